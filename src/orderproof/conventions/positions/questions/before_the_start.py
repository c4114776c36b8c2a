"""Position -1."""

from orderproof.conventions.positions.function import PositionTable
from orderproof.conventions.question import Question


def _ask(table: PositionTable) -> str:
    return table.meaning(-1)


QUESTION = Question(
    "before_the_start", "positions",
    "What does a table give for position -1, which a running sum of a mask gives to pads?",
    "Pads get a vector in one library and an error in another; a row before an offset belongs to no position.",
    _ask,
)  # fmt: skip
