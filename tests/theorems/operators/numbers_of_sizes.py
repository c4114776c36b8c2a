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


def turned(m: Program, x: Tensor, base: float) -> Tensor:
    """Causal attention with rotated queries and keys."""
    angle = torch.arange(x.shape[1])[:, None] / base ** (torch.arange(3) / 3)
    q, k = (torch.cat([y[..., :3] * angle.cos(), y[..., 3:] * angle.sin()], -1) for y in (m.first(x), m.second(x)))
    return (q @ k.mT).masked_fill(~lower(x), -torch.inf).softmax(-1) @ m.third(x)


def grown(m: Program, x: Tensor) -> Tensor:
    """A base that grows beyond a length."""
    base = 100.0
    if x.shape[1] > 8:
        base = base * (2.0 * x.shape[1] / 8 - 1.0) ** 1.5
    return turned(m, x, base)


def late(m: Program, x: Tensor, is_long: bool) -> Tensor:
    """Attention to one later token, if a condition on the length is true."""
    return scaled(m, x, 2.0) if not is_long else scaled(m, x, 2.0, hides=False)


PROGRAMS = [
    Case("base that grows beyond a length", grown, CAUSAL, least=9),
    Case("base by the length", lambda m, x: turned(m, x, 100.0 * max(1.0, x.shape[1] / 16) ** 2), CAUSAL, greatest=16),
    Case("scores by a share", lambda m, x: scaled(m, x, min(1.0, 16 / x.shape[1])), CAUSAL, greatest=16),
    Case("all tokens beyond a share", lambda m, x: late(m, x, x.shape[1] / 16 > 2), CAUSAL, greatest=32),
    Case("all tokens up to a share", lambda m, x: late(m, x, 16 / x.shape[1] >= 2.0), CAUSAL, least=9),
    Case("all tokens from a share on", lambda m, x: late(m, x, x.shape[1] / 4 > 2), NOT_CAUSAL, least=9),
    Case("all tokens at no share", lambda m, x: late(m, x, 16 / x.shape[1] < 0), CAUSAL),
    Case("sigmoids of scores", sigmoids, CAUSAL),
    Case("positive parts of scores", lambda m, x: sigmoids(m, x, -1e9, torch.relu), CAUSAL),
    Case("tangents of scores", lambda m, x: sigmoids(m, x, -1e9, torch.tanh), NOT_CAUSAL),
    Case("sigmoids of scores that a small number masks", lambda m, x: sigmoids(m, x, -5.0), NOT_CAUSAL),
    Case("scores by the root of the length", lambda m, x: scaled(m, x, math.sqrt(x.shape[1])), CAUSAL),
    Case("scores by a power of the length", lambda m, x: scaled(m, x, x.shape[1] ** 0.5), CAUSAL),
    Case("logarithm of the length added", lambda m, x: scaled(m, x, 2.0, added=math.log(x.shape[1])), CAUSAL),
    Case("scores of all by a logarithm", lambda m, x: scaled(m, x, 1 + math.log2(x.shape[1]), hides=False), NOT_CAUSAL),
]
LENGTHS = "tests.recording.test_sizes_of_loops:test_numbers_of_the_length"
MUTANTS = [
    *mutants_of(
        "theorems.operators.pointwise.value_ranges",
        M("tangent_of_a_mask", "call.name in _ZERO_IF_HIDDEN", "True", program="tangents of scores"),
    ),
    *mutants_of(
        "recording.open_sizes",
        M("number_of_another_length", "{symbol: sizes[name] for symbol, name in self._names.items()}",
          "{symbol: sizes[name] + 1 for symbol, name in self._names.items()}", program=LENGTHS),
    ),
]  # fmt: skip
