"""Programs with normalizations whose parameters are as large as a mask."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, lower


def scaled(m: Program, x: Tensor) -> Tensor:
    """Causal attention whose scores are normalized for each query, with a weight larger than the mask."""
    n = x.shape[1]
    s = F.batch_norm(m.first(x) @ m.second(x).mT, torch.zeros(n), torch.ones(n), torch.full((n,), 1e10))
    return (s + torch.zeros(n, n).masked_fill(~lower(x), -1e9)).softmax(-1) @ m.third(x)


PROGRAMS = [
    Case("norm of each row and feature", lambda m, x: F.instance_norm(x.mT).mT, frozenset({"batch"}), least=2),
    Case("norm of each token", lambda m, x: F.instance_norm(m.first(x)), frozenset({"causal", "batch"})),
    Case(
        "norm of each feature of all rows", lambda m, x: F.batch_norm(x.mT, None, None, training=True).mT, frozenset()
    ),
    Case(
        "features of a large variance",
        lambda m, x: F.batch_norm(x.mT, torch.zeros(6), torch.full((6,), 1e9)).mT,
        frozenset({"causal", "batch"}),
    ),
    Case("scores of a large weight", scaled, frozenset({"batch"})),
]
MUTANTS = mutants_of(
    "theorems.operators.normalization.normalization",
    M(
        "large_parameters",
        "TRUE if large else ranges.hidden | ranges.unbounded",
        "ranges.hidden | ranges.unbounded",
        program="scores of a large weight",
    ),
)
