"""The largest element of a window along tokens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import Case, Program


def largest(m: Program, x: Tensor, before: int, *, after: int = 0, stride: int = 1) -> Tensor:
    """The largest of some tokens before each, and of some after it."""
    y = F.max_pool1d(F.pad(m.first(x).mT, (before, after), value=-torch.inf), before + after + 1, stride)
    return y.repeat_interleave(stride, -1).mT


def padded_twice(m: Program, x: Tensor) -> Tensor:
    """A window of a tensor that is padded at its front, with a padding of its own."""
    return F.max_pool1d(F.pad(m.first(x).mT, (1, 0)), 3, 1, 1)[..., : x.shape[1]].mT


PROGRAMS = [
    Case("largest of a window padded twice", padded_twice, frozenset({"causal", "batch"})),
    Case("largest of a window before", lambda m, x: largest(m, x, 3), frozenset({"causal", "batch"})),
    Case("largest of a window around", lambda m, x: largest(m, x, 1, after=1), frozenset({"batch"})),
    Case(
        "largest of a window of one number",
        lambda m, x: F.max_pool1d(m.first(x), 3, 1, 1),
        frozenset({"causal", "batch"}),
    ),
]
MOVED_PROGRAMS = [
    MovedCase("largest of features", lambda m, x, p: F.max_pool1d(m.first(x), 3, 1, 1)),
    MovedCase("largest of neighbours", lambda m, x, p: largest(m, x, 2), equivariant=False),
]
MUTANTS = mutants_of(
    "theorems.operators.convolution.pooling",
    M("windows_without_padding", 'call.argument(3, "padding", 0)', "0", program="largest of a window padded twice"),
)
