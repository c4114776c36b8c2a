"""The position after the last one of a table."""

from orderproof.conventions.positions.function import PositionTable
from orderproof.conventions.question import Question


def _ask(table: PositionTable) -> str:
    return table.meaning(table.length)


QUESTION = Question(
    "after_the_end", "positions", "What does a table of n positions give for position n?",
    "Where it gives the vector of another position, a long text is read as a short one, without an error.",
    _ask,
)  # fmt: skip
