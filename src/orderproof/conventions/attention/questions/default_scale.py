"""The factor of scores if none is given."""

import math

import torch

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.question import Question

NAMES = {1 / math.sqrt(WIDTH): "1 / sqrt(width)", 1.0: "1", 1 / WIDTH: "1 / width", math.sqrt(WIDTH): "sqrt(width)"}


def _ask(function: AttentionFunction) -> str:
    one = torch.zeros(1, WIDTH)
    one[0, 0] = 1.0
    weights = function.weights(2, 2, query=one, key=torch.cat([one, 0 * one]))[0, 0, 0]
    scale = float((weights[0] / weights[1]).log())
    return next((name for number, name in NAMES.items() if abs(number - scale) < 1e-3), f"{scale:.4g} at width {WIDTH}")


QUESTION = Question(
    "default_scale", "attention", "By what are scores multiplied if no scale is given?",
    "A second scale makes attention too flat or too sharp; shapes and tests of equality of shapes do not show it.",
    _ask, frozenset({"scores"}),
)  # fmt: skip
