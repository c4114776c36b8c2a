"""Positions below zero."""

from orderproof.conventions.question import OTHER, Question
from orderproof.conventions.rotation.function import RotaryFunction


def _ask(function: RotaryFunction) -> str:
    forward, back = function.angles(1)[0], function.angles(-1)[0]
    return "rotated back" if abs(forward + back) < 1e-3 else "as position 0" if abs(back) < 1e-6 else OTHER


QUESTION = Question(
    "negative_positions", "rotation", "What does position -1 give, as left pads make it?",
    "A table that is indexed from its end gives pads the angles of the last position.",
    _ask,
)  # fmt: skip
