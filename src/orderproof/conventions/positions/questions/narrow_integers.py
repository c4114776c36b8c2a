"""Positions of 32 bits."""

import torch

from orderproof.conventions.positions.function import LENGTH, PositionTable
from orderproof.conventions.question import OTHER, Question, same


def _ask(table: PositionTable) -> str:
    positions = torch.arange(min(table.length, LENGTH))
    found, expected = table.look_up(positions.int()), table.look_up(positions)
    return "the same as of 64 bits" if same(found, expected, 1e-6) else OTHER


QUESTION = Question(
    "narrow_integers", "positions", "Are positions taken as integers of 32 bits?",
    "Engines use 32 bits: a table that refuses them fails where the model is served, not where it is tested.",
    _ask,
)  # fmt: skip
