"""Masks that are joined of a few: any of them is true, or all are."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import Case, Program, attend, index

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def joined(m: Program, x: Tensor, join: Callable[[Tensor], Tensor], dim: int = 0) -> Tensor:
    """Attention to the keys before a query, within a window."""
    i, j = index(x)
    return attend(m, x, ~join(torch.stack([j > i, j < i - 5], dim)))


def seen_by_all(m: Program, x: Tensor) -> Tensor:
    """Attention to the keys that each of two masks leaves."""
    i, j = index(x)
    return attend(m, x, torch.stack([j <= i, j > i - 5]).long().all(0, keepdim=True))


PROGRAMS = [
    Case("any of two masks hides", lambda m, x: joined(m, x, lambda masks: masks.any(0)), CAUSAL),
    Case("any of two masks hides, last", lambda m, x: joined(m, x, lambda masks: masks.any(-1), -1), CAUSAL),
    Case("both of two masks hide", lambda m, x: joined(m, x, lambda masks: masks.all(0)), NOT_CAUSAL),
    Case("all masks leave a key", seen_by_all, CAUSAL),
]
MOVED_PROGRAMS = [
    MovedCase(
        "any of two masks of positions hides",
        lambda m, x, p: attend(m, x, torch.stack([p[:, None] <= p[..., None], p[:, None] == p[..., None]]).any(0)),
    ),
]
MUTANTS = mutants_of(
    "theorems.operators.reduction.reduction",
    M(
        "any_of_few_for_all",
        'disjunction(*few) if call.name == "any" else conjunction(*few)',
        "disjunction(*few)",
        program="both of two masks hide",
    ),
)
