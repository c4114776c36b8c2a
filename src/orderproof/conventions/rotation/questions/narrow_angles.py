"""The positions of vectors in bfloat16."""

import math

import torch

from orderproof.conventions.question import OTHER, Question
from orderproof.conventions.rotation.function import RotaryFunction

POSITION, ROUNDED = 1001, 1000  # one number in bfloat16


def _ask(function: RotaryFunction) -> str:
    def off(found: float, position: int, speed: float) -> float:
        return abs(math.remainder(found - position * speed, 2 * math.pi))

    speed = function.angles(1)[0]
    found = function.angles(POSITION, torch.bfloat16)[0]
    if off(found, POSITION, speed) < 0.05:
        return "computed wider"
    return "positions are rounded to bfloat16" if off(found, ROUNDED, speed) < 0.05 else OTHER


QUESTION = Question(
    "narrow_angles", "rotation", "Are the angles of vectors in bfloat16 computed in bfloat16?",
    "Beyond position 256 neighbours get one angle, and a model in bfloat16 loses the order of its tokens.",
    _ask,
)  # fmt: skip
