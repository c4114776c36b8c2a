"""Positions of each row."""

import torch

from orderproof.conventions.question import OTHER, Question, same
from orderproof.conventions.rotation.function import WIDTH, RotaryFunction

FIRST = (0, 2)  # the first position of each row


def _ask(function: RotaryFunction) -> str:
    x = torch.ones(2, 1, 3, WIDTH)
    found = function.rotate(x, torch.tensor([[0, 1, 2], [2, 3, 4]])).double()
    alone = [function.rotate(x[:1], torch.arange(first, first + 3))[0].double() for first in FIRST]
    if same(found[0], alone[0]) and same(found[1], alone[1]):
        return "each row by its own"
    return "all rows by those of the first" if same(found[0], alone[0]) and same(found[1], alone[0]) else OTHER


QUESTION = Question(
    "row_positions", "rotation", "Do two rows of a batch, given positions from 0 and from 2, turn by their own?",
    "Rows of a batch that were prefilled to different lengths are decoded at the positions of the first.",
    _ask, frozenset({"rows"}),
)  # fmt: skip
