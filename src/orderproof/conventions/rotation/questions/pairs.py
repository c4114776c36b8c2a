"""The elements that are rotated together."""

from orderproof.conventions.question import OTHER, Question
from orderproof.conventions.rotation.function import RotaryFunction


def _ask(function: RotaryFunction) -> str:
    pairs = [(i, j) for i, j in enumerate(function.partners) if j is not None and i < j]
    if len(pairs) < 2:
        return "one pair" if pairs else "none"
    starts = [i for i, _ in pairs]
    if all(j == i + 1 for i, j in pairs):
        return "neighbours"
    half = len(pairs)
    return (
        "halves"
        if starts == list(range(starts[0], starts[0] + half)) and all(j == i + half for i, j in pairs)
        else OTHER
    )


QUESTION = Question(
    "pairs", "rotation", "Which elements are rotated together: neighbours, or one of each half?",
    "Weights of one order rotate the wrong pairs in the other; the numbers stay plausible.",
    _ask,
)  # fmt: skip
