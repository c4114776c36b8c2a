"""Programs with rows of scores that are all hidden, which `nan_to_num` makes zero; and some that it does not."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program, index

INF = float("-inf")


def _before(x: Tensor) -> Tensor:
    """The keys before each query: none for the first."""
    i, j = index(x)
    return j < i


def _scores(m: Program, x: Tensor) -> Tensor:
    return m.first(x) @ m.second(x).mT


def _filled(m: Program, x: Tensor, fill: float = INF, nan: float = 0.0) -> Tensor:
    weights = _scores(m, x).masked_fill(~_before(x), fill).softmax(-1)
    return torch.nan_to_num(weights, nan=nan) @ m.third(x)


def _chosen(m: Program, x: Tensor, seen: Tensor) -> Tensor:
    return torch.where(seen, _scores(m, x), INF).softmax(-1).nan_to_num() @ m.third(x)


def _added(m: Program, x: Tensor, fill: float) -> Tensor:
    bias = torch.zeros(x.shape[1], x.shape[1]).masked_fill(~_before(x), fill)
    return torch.nan_to_num((_scores(m, x) + bias).softmax(-1)) @ m.third(x)


def _case(name: str, function: object, *laws: str) -> Case:
    return Case(name, function, frozenset(laws))  # type: ignore[arg-type]


PROGRAMS = [
    _case("keys before each query, filled", _filled, "causal", "batch"),
    _case("keys before each query, chosen", lambda m, x: _chosen(m, x, _before(x)), "causal", "batch"),
    _case("keys before each query, by a sum", lambda m, x: _added(m, x, INF), "causal", "batch"),
    _case(
        "keys before each query, filled with a number", lambda m, x: _filled(m, x, torch.finfo(x.dtype).min), "batch"
    ),
    _case("keys before each query, by a sum of numbers", lambda m, x: _added(m, x, torch.finfo(x.dtype).min), "batch"),
    _case("keys before each query, or all of them", lambda m, x: _filled(m, x, nan=1.0), "batch"),
    _case("keys after each query, or none", lambda m, x: _chosen(m, x, _before(x).mT), "batch"),
]
MUTANTS = mutants_of(
    "theorems.walks.endless_scores",
    M(
        "any_large_number",
        "$v == -math.inf",
        "$v < 0",
        program="keys before each query, filled with a number",
        quick=True,
    ),
    M(
        "any_number_for_nan",
        "$call.argument(1, 'nan') not in (None, 0)",
        "False",
        program="keys before each query, or all of them",
        quick=True,
    ),
)
