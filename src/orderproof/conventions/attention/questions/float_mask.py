"""The keys at which a mask of floating point is 1."""

import torch

from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.attention.mask_reading import effect, effect_text, first_key_marked
from orderproof.conventions.question import Question


def _ask(function: AttentionFunction) -> str:
    return effect_text("1.0", effect(function, first_key_marked(torch.float32)))


QUESTION = Question(
    "float_mask", "attention", "What does 1.0 in a mask of floating point do to a key?",
    "A mask of zeros and ones that is added hides nothing.",
    _ask, frozenset({"mask"}),
)  # fmt: skip
