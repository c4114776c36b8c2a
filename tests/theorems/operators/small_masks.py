"""Masks of ten thousand, which hide scores that are small compared with them; and smaller numbers, which do not."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, lower

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def _scores(m: Program, x: Tensor) -> Tensor:
    return m.first(x) @ m.second(x).mT


def _filled(number: float, divisor: float = 1.0) -> Callable[[Program, Tensor], Tensor]:
    """Attention whose scores are filled with a number for later tokens, and divided."""

    def attend(m: Program, x: Tensor) -> Tensor:
        return (_scores(m, x).masked_fill(~lower(x), number) / divisor).softmax(-1) @ m.third(x)

    return attend


def _of_large(number: float, scale: float) -> Callable[[Program, Tensor], Tensor]:
    """Attention whose scores are as negative as the number that later tokens get."""

    def attend(m: Program, x: Tensor) -> Tensor:
        return (-scale * _scores(m, x).abs()).masked_fill(~lower(x), number).softmax(-1) @ m.third(x)

    return attend


def _biased(own: float, later: float) -> Callable[[Program, Tensor], Tensor]:
    """Attention with one number added to the scores of earlier tokens, and another to those of later ones."""

    def attend(m: Program, x: Tensor) -> Tensor:
        bias = torch.full((x.shape[1], x.shape[1]), own).masked_fill(~lower(x), later)
        return (_scores(m, x) + bias).softmax(-1) @ m.third(x)

    return attend


def _clamped(m: Program, x: Tensor, number: float, least: float, most: float | None = None) -> Tensor:
    """Attention whose scores are filled with a number for later tokens, and clamped."""
    return _scores(m, x).masked_fill(~lower(x), number).clamp(least, most).softmax(-1) @ m.third(x)


def _pads(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    return (_scores(m, x) + (1.0 - mask[:, None].to(x.dtype)) * -1e4).softmax(-1) @ m.third(x)


def _few_of_pads(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    return (_scores(m, x) + (1.0 - mask[:, None].to(x.dtype)) * -10.0).softmax(-1) @ m.third(x)


def _integers(m: Program, x: Tensor) -> Tensor:
    return (_scores(m, x) + torch.where(lower(x), 0, -10000)).softmax(-1) @ m.third(x)


def _numerators(m: Program, x: Tensor) -> Tensor:
    weights = (_scores(m, x) - 1e4 * (~lower(x)).to(x.dtype)).exp()
    return weights @ m.third(x)


PROGRAMS = [
    Case("mask of 10000", _filled(-1e4), CAUSAL),
    Case("mask of 10000 added", _biased(0.0, -1e4), CAUSAL),
    Case("mask of 10000 as integers", _integers, CAUSAL),
    Case("mask of 10000 under an exponential", _numerators, CAUSAL),
    Case("mask of the least float16", _filled(-65504.0), CAUSAL),
    Case("mask of 10000 divided by 8", _filled(-1e4, divisor=8.0), CAUSAL),
    Case("mask of 10000 clamped", lambda m, x: _clamped(m, x, -1e9, -1e4), CAUSAL),
    Case("large mask clamped", lambda m, x: _clamped(m, x, -math.inf, torch.finfo(x.dtype).min), CAUSAL),
    Case("large mask clamped from both sides", lambda m, x: _clamped(m, x, -math.inf, -1e9, 30.0), CAUSAL),
    Case("large mask clamped at 10", lambda m, x: _clamped(m, x, -math.inf, -10.0), NOT_CAUSAL),
    Case("large mask clamped down", lambda m, x: _clamped(m, x, -math.inf, -1e9, -1e9), NOT_CAUSAL),
    Case("mask of 10000 at pads", _pads, frozenset({"padding", "batch"}), masked=True),
    Case("mask of 10 at pads", _few_of_pads, frozenset({"batch"}), masked=True),
    Case("mask of 10", _filled(-10.0), NOT_CAUSAL),
    Case("mask of 100", _of_large(-100.0, 900.0), NOT_CAUSAL),
    Case("mask of 1000", _of_large(-1e3, 9e3), NOT_CAUSAL),
    Case("mask of 9000", _of_large(-9e3, 5e4), NOT_CAUSAL),
    Case("mask of 10000 of large scores", _of_large(-1e4, 5e4), NOT_CAUSAL),
    Case("mask of 10000 divided by 1000", _filled(-1e4, divisor=1000.0), NOT_CAUSAL),
    Case("mask of 10000 next to another", _biased(-9990.0, -1e4), NOT_CAUSAL),
    Case("mask of 10000 everywhere", _biased(-1e4, -1e4), NOT_CAUSAL),
    Case("mask of 10000 for earlier tokens", _biased(-1e4, 0.0), NOT_CAUSAL),
    Case("mask of 10000 less than a larger one", _biased(-5e4, -1e4), NOT_CAUSAL),
]
MUTANTS = mutants_of(
    "number_limits",
    M(
        "ordinary_next_to_a_small_mask",
        "ORDINARY_SHARE * _least_mask.get()",
        "ORDINARY_LIMIT",
        program="mask of 10000 next to another",
    ),
)
