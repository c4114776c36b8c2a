"""Programs that compute with roots, logarithms and quotients of the number of tokens."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def scaled(m: Program, x: Tensor, number: float, *, added: float = 0.0, hides: bool = True) -> Tensor:
    """Attention with scores that are scaled, and to which a number is added."""
    scores = (m.first(x) @ m.second(x).mT) / number - added
    weights = scores.masked_fill(~lower(x), -torch.inf) if hides else scores
    return weights.softmax(-1) @ m.third(x)


def sigmoids(
    m: Program, x: Tensor, fill: float = -torch.inf, function: Callable[..., Tensor] = torch.sigmoid
) -> Tensor:
    """Attention whose weights are sigmoids of scores, or another function of them."""
    scores = (m.first(x) @ m.second(x).mT - math.log(x.shape[1])).masked_fill(~lower(x), fill)
    return function(scores) @ m.third(x)


PROGRAMS = [
    Case("sigmoids of scores", sigmoids, CAUSAL),
    Case("positive parts of scores", lambda m, x: sigmoids(m, x, -1e9, torch.relu), CAUSAL),
    Case("tangents of scores", lambda m, x: sigmoids(m, x, -1e9, torch.tanh), NOT_CAUSAL),
    Case("sigmoids of scores that a small number masks", lambda m, x: sigmoids(m, x, -5.0), NOT_CAUSAL),
    Case("scores by the root of the length", lambda m, x: scaled(m, x, math.sqrt(x.shape[1])), CAUSAL),
    Case("scores by a power of the length", lambda m, x: scaled(m, x, x.shape[1] ** 0.5), CAUSAL),
    Case("logarithm of the length added", lambda m, x: scaled(m, x, 2.0, added=math.log(x.shape[1])), CAUSAL),
    Case("scores of all by a logarithm", lambda m, x: scaled(m, x, 1 + math.log2(x.shape[1]), hides=False), NOT_CAUSAL),
]
MUTANTS = mutants_of(
    "theorems.operators.pointwise.value_ranges",
    M("tangent_of_a_mask", "call.name in _ZERO_IF_HIDDEN", "True", program="tangents of scores"),
)
