"""Scores from which a mask of large numbers is subtracted; and some to which it is added."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def attend(m: Program, x: Tensor, size: float, *, scaled: bool = True) -> Tensor:
    """Attention whose scores lose a number for later tokens."""
    lower = torch.ones(x.shape[1], x.shape[1]).tril()
    s = m.first(x) @ m.second(x).mT
    return ((s * lower if scaled else s) - size * (1 - lower)).softmax(-1) @ m.third(x)


def less_scores(m: Program, x: Tensor) -> Tensor:
    """The mask less the scores."""
    bias = torch.full((x.shape[1], x.shape[1]), -1e10).triu(1)
    return (bias - m.first(x) @ m.second(x).mT).softmax(-1) @ m.third(x)


def clamped(m: Program, x: Tensor, clamp: Callable[[Tensor], Tensor], fill: float = -1e9) -> Tensor:
    """Weights that are scores of which the negative ones, and so those of later tokens, are another number."""
    later = ~torch.ones(x.shape[1], x.shape[1]).tril().bool()
    return clamp((m.first(x) @ m.second(x).mT).masked_fill(later, fill)) @ m.third(x)


PROGRAMS = [
    Case("clamped at zero", lambda m, x: clamped(m, x, lambda s: s.clamp(min=0)), CAUSAL),
    Case("clamped between zero and one", lambda m, x: clamped(m, x, lambda s: s.clamp(0, 1)), CAUSAL),
    Case("not below zero", lambda m, x: clamped(m, x, lambda s: torch.maximum(s, torch.zeros(1))), CAUSAL),
    Case("clamped below zero", lambda m, x: clamped(m, x, lambda s: s.clamp(min=-1)), NOT_CAUSAL),
    Case("clamped at one", lambda m, x: clamped(m, x, lambda s: s.clamp(1, 2)), NOT_CAUSAL),
    Case("clamped down to a negative number", lambda m, x: clamped(m, x, lambda s: s.clamp(0, -1)), NOT_CAUSAL),
    Case(
        "clamped at zero without a mask", lambda m, x: clamped(m, x, lambda s: (s + 5).clamp(min=0), -2.0), NOT_CAUSAL
    ),
    Case("not below one", lambda m, x: clamped(m, x, lambda s: torch.maximum(s, torch.ones(1))), NOT_CAUSAL),
    Case("large number subtracted", lambda m, x: attend(m, x, 1e10), CAUSAL),
    Case("large number subtracted from any scores", lambda m, x: attend(m, x, 1e9, scaled=False), CAUSAL),
    Case("mask less scores", less_scores, CAUSAL),
    Case("small number subtracted", lambda m, x: attend(m, x, 3.0), NOT_CAUSAL),
    Case("negative number subtracted", lambda m, x: attend(m, x, -1e10), NOT_CAUSAL),
]
MUTANTS = mutants_of(
    "theorems.operators.pointwise.value_ranges",
    M("mask_with_the_same_sign", "(condition, -number)", "(condition, number)", program="negative number subtracted"),
    M("zero_for_any_larger_number", "b.zero & a.hidden", "a.hidden", program="clamped at one"),
)
