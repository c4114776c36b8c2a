"""The direction of the rotation."""

from orderproof.conventions.question import OTHER, Question
from orderproof.conventions.rotation.function import FIRST_POSITION, RotaryFunction


def _ask(function: RotaryFunction) -> str:
    angles = function.angles(FIRST_POSITION)
    if all(angle > 0 for angle in angles):
        return "from the first element to the second"
    return "from the second element to the first" if all(angle < 0 for angle in angles) else OTHER


QUESTION = Question(
    "direction", "rotation", "Does a later position rotate from the first element of a pair to the second?",
    "Queries and keys of two libraries that turn in opposite directions see distances with the wrong sign.",
    _ask,
)  # fmt: skip
