"""The angles of far positions."""

import math

from orderproof.conventions.question import Question
from orderproof.conventions.rotation.function import RotaryFunction

FAR = 1_000_003  # an integer in float32


def _ask(function: RotaryFunction) -> str:
    speeds, found = function.angles(1), function.angles(FAR)
    exact = [math.copysign(exact_speed(speeds, k), speeds[k]) for k in range(len(speeds))]
    worst = max(abs(math.remainder(a - FAR * s, 2 * math.pi)) for a, s in zip(found, exact, strict=True))
    return "within 0.001 rad" if worst < 1e-3 else f"off by {worst:.0e} rad"


def exact_speed(speeds: list[float], place: int) -> float:
    """The exact speed [rad a token] of a pair, of the base that the first two speeds show, a whole number."""
    if len(speeds) < 2 or abs(abs(speeds[0]) - 1) > 1e-4:
        return abs(speeds[place])
    base = round(abs(speeds[0] / speeds[1]) ** len(speeds))
    return float(base ** (-place / len(speeds)))


QUESTION = Question(
    "far_positions", "rotation", "By how much are angles off at position 1,000,003 in float32?",
    "Angles are products of float32 numbers: far positions differ between libraries, and from float64.",
    _ask,
)  # fmt: skip
