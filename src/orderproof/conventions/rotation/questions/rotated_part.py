"""The part of a vector that is rotated."""

from orderproof.conventions.question import Question
from orderproof.conventions.rotation.function import WIDTH, RotaryFunction


def _ask(function: RotaryFunction) -> str:
    rotated = [k for k, partner in enumerate(function.partners) if partner is not None]
    if len(rotated) == WIDTH:
        return "all of it"
    if not rotated:
        return "nothing"
    ends = {0: "the first", WIDTH - len(rotated): "the last"}
    return f"{ends.get(rotated[0], 'a middle')} {len(rotated)} of {WIDTH} elements"


QUESTION = Question(
    "rotated_part", "rotation", "Which part of a vector is rotated?",
    "A partial rotation applied to the whole vector, or to its other end, destroys what the rest carries.",
    _ask,
)  # fmt: skip
