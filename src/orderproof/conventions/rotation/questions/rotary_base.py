"""The base of the frequencies."""

from orderproof.conventions.question import Question
from orderproof.conventions.rotation.function import FIRST_POSITION, RotaryFunction


def _ask(function: RotaryFunction) -> str:
    angles = [abs(angle) for angle in function.angles(FIRST_POSITION)]
    if len(angles) < 2:
        return "one frequency"
    base = (angles[0] / angles[1]) ** len(angles)
    start = "" if abs(angles[0] - 1) < 1e-4 else f", from {angles[0]:.4g} rad a token"
    return f"{base:.4g}{start}"


QUESTION = Question(
    "rotary_base", "rotation", "What is the base of the frequencies, and the first of them?",
    "A default base that the checkpoint does not have is right at the start of a text and wrong far from it.",
    _ask,
)  # fmt: skip
