"""The dtype of rotated vectors."""

import torch

from orderproof.conventions.question import Question
from orderproof.conventions.rotation.function import WIDTH, RotaryFunction


def _ask(function: RotaryFunction) -> str:
    found = function.rotate(torch.ones(1, 1, 4, WIDTH, dtype=torch.bfloat16), torch.arange(4))
    return "that of the vectors" if found.dtype is torch.bfloat16 else str(found.dtype).removeprefix("torch.")


QUESTION = Question(
    "result_dtype", "rotation", "Which dtype has the result for vectors in bfloat16?",
    "A wider result meets keys of a cache in the narrow one: an error, or a silent cast.",
    _ask,
)  # fmt: skip
