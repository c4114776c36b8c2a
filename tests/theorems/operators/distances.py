"""Distances of tokens to each other and to stored vectors, and medians of tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import WIDTH, Case, Program, lower

BOTH = frozenset({"causal", "batch"})


def _codes(m: Program, x: Tensor) -> Tensor:
    """The vector that is nearest to each token."""
    nearest = torch.cdist(m.first(x), m.second.weight.expand(x.shape[0], -1, -1)).argmin(-1)
    return x + m.second.weight[nearest]


def _near(m: Program, x: Tensor) -> Tensor:
    """Keys by their distances."""
    return (-torch.cdist(m.first(x), m.second(x))).masked_fill(~lower(x), float("-inf")).softmax(-1) @ m.third(x)


def _near_all(m: Program, x: Tensor) -> Tensor:
    return (-torch.cdist(m.first(x), m.second(x), p=1.0)).softmax(-1) @ m.third(x)


def _of_zeros(m: Program, x: Tensor) -> Tensor:
    """The distance of zero to a later token is no zero."""
    return x * torch.cdist(torch.zeros_like(x), m.first(x.flip(1))).diagonal(dim1=1, dim2=2)[..., None]


def _with_order(m: Program, x: Tensor) -> Tensor:
    places = torch.arange(x.shape[1], dtype=x.dtype)[None, :, None].expand(x.shape[0], -1, WIDTH)
    return torch.cdist(x, places).softmax(-1) @ m.first(x)


PROGRAMS = [
    Case("distances to stored vectors", _codes, BOTH),
    Case("distances of visible keys", _near, BOTH),
    Case("distances of all keys", _near_all, frozenset({"batch"})),
    Case("distances of zeros", _of_zeros, frozenset({"batch"})),
]
MOVED_PROGRAMS = [
    MovedCase("distances of keys", lambda m, x, p: _near_all(m, x)),
    MovedCase("nearest stored vector", lambda m, x, p: _codes(m, x)),
    MovedCase("distances to places", lambda m, x, p: _with_order(m, x), equivariant=False),
    MovedCase("median along tokens", lambda m, x, p: x - x.median(1, keepdim=True).values),
    MovedCase("place of the median", lambda m, x, p: x * x.median(1, keepdim=True).indices, equivariant=False),
]
MUTANTS = mutants_of(
    "theorems.operators.contraction.distances",
    M(
        "one_set_of_vectors_only",
        "conjunction(*(fact.same for fact in placed))",
        "conjunction(*(fact.same for fact in placed[:1]))",
        program="distances of zeros",
    ),
    M(
        "vectors_of_a_diagonal",
        '[*batch, "row", "column"]',
        '[*batch, "column", "row"]',
        program="distances to stored vectors",
    ),
)
