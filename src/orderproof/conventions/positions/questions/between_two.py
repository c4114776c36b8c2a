"""A position that is no whole number."""

from orderproof.conventions.positions.function import PositionTable
from orderproof.conventions.question import Question


def _ask(table: PositionTable) -> str:
    found = table.meaning(0.75)
    return "rounded down, in silence" if found == "that of position 0" else found


QUESTION = Question(
    "between_two", "positions", "What does a table give for position 0.75, as interpolated positions have it?",
    "Interpolated positions that are rounded give neighbours one vector.",
    _ask,
)  # fmt: skip
