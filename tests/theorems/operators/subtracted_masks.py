"""Scores from which a mask of large numbers is subtracted; and some to which it is added."""

from __future__ import annotations

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


PROGRAMS = [
    Case("large number subtracted", lambda m, x: attend(m, x, 1e10), CAUSAL),
    Case("large number subtracted from any scores", lambda m, x: attend(m, x, 1e9, scaled=False), CAUSAL),
    Case("mask less scores", less_scores, CAUSAL),
    Case("small number subtracted", lambda m, x: attend(m, x, 3.0), NOT_CAUSAL),
    Case("negative number subtracted", lambda m, x: attend(m, x, -1e10), NOT_CAUSAL),
]
MUTANTS = mutants_of(
    "theorems.operators.pointwise.value_ranges",
    M("mask_with_the_same_sign", "(condition, -number)", "(condition, number)", program="negative number subtracted"),
)
