"""The head of keys that each head of queries uses if there are fewer of them."""

import torch

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.question import OTHER, Question


def _ask(function: AttentionFunction) -> str:
    value = torch.zeros(1, 2, 1, WIDTH)
    value[0, 0, 0, 0] = value[0, 1, 0, 1] = 1.0
    found = function.attend(torch.zeros(1, 4, 1, WIDTH), torch.zeros(1, 2, 1, WIDTH), value, grouped=True)
    used = found[0, :, 0, :2].argmax(-1).tolist()
    return {(0, 0, 1, 1): "neighbours share one", (0, 1, 0, 1): "in turns"}.get(tuple(used), OTHER)


QUESTION = Question(
    "grouped_heads", "attention", "Which of 2 heads of keys do 4 heads of queries use?",
    "A checkpoint of one order loads without an error into the other, and attends with the wrong heads.",
    _ask, frozenset({"grouped"}),
)  # fmt: skip
