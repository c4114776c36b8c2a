"""Programs with triangular systems whose diagonal of ones is in the matrix, and with inverses; and some that leak."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import Case, Program

CAUSAL, NOT_CAUSAL = frozenset({"causal", "batch"}), frozenset({"batch"})


def matrix(m: Program, x: Tensor, diagonal: int = -1, sign: int = 1, *, upper: bool = False) -> Tensor:
    """The identity plus, or less, products of tokens on one side of a diagonal."""
    k = torch.nn.functional.normalize(m.first(x), dim=-1) / 4
    products = (k @ k.mT).triu(-diagonal) if upper else (k @ k.mT).tril(diagonal)
    eye = torch.eye(x.shape[1])
    return eye + products if sign > 0 else eye - products


def both_sides(m: Program, x: Tensor) -> Tensor:
    """A diagonal of ones between products of earlier and of later tokens."""
    k = torch.nn.functional.normalize(m.first(x), dim=-1) / 4
    eye = torch.eye(x.shape[1])
    return eye + (k @ k.mT).masked_fill(eye.bool(), 0)


def mixed(x: Tensor, weights: Tensor) -> Tensor:
    """Earlier tokens, weighted."""
    return weights.tril() @ x


def solved(m: Program, x: Tensor, a: Tensor, *, upper: bool = False) -> Tensor:
    """A sum over the earlier rows of a solution, times zeros for the later ones."""
    return mixed(m.second(x), m.third(x) @ x.mT) + (x @ x.mT).tril() @ torch.linalg.solve_triangular(a, x, upper=upper)


def inverted(x: Tensor, a: Tensor) -> Tensor:
    """Tokens mixed by the inverse of a matrix."""
    return torch.inverse(a) @ x


def later_parts(x: Tensor, a: Tensor) -> Tensor:
    """The sum of what an inverse has above its diagonal."""
    return x + torch.linalg.inv(a).triu(1).sum(-1, keepdim=True)


PROGRAMS = [
    Case("system with ones on the diagonal", lambda m, x: solved(m, x, matrix(m, x)), CAUSAL),
    Case("system less its products", lambda m, x: solved(m, x, matrix(m, x, sign=-1)), CAUSAL),
    Case("upper system with ones", lambda m, x: solved(m, x, matrix(m, x, upper=True), upper=True), NOT_CAUSAL),
    Case("inverse of a triangle", lambda m, x: inverted(x, matrix(m, x)), CAUSAL),
    Case("inverse of a triangle of features", lambda m, x: x @ torch.inverse(
        torch.eye(6) + m.first.weight.triu(1)), CAUSAL),
    Case("later parts of an inverse", lambda m, x: later_parts(x, matrix(m, x)), CAUSAL),
    Case("inverse of an upper triangle", lambda m, x: inverted(x, matrix(m, x, upper=True)), NOT_CAUSAL),
    Case("rows of an inverse", lambda m, x: x + torch.inverse(matrix(m, x)).sum(-1, keepdim=True), CAUSAL),
    Case("rows of an upper inverse", lambda m, x: x + torch.inverse(matrix(m, x, upper=True)).sum(-1, keepdim=True),
         NOT_CAUSAL),
    Case("later parts of an upper inverse", lambda m, x: later_parts(x, matrix(m, x, upper=True)), NOT_CAUSAL),
    Case("inverse with both sides", lambda m, x: inverted(x, both_sides(m, x)), NOT_CAUSAL),
    Case("later parts of an inverse with both sides", lambda m, x: later_parts(x, both_sides(m, x)), NOT_CAUSAL),
]  # fmt: skip
MUTANTS = [
    *mutants_of(
        "theorems.operators.triangular.unit_diagonal",
        M("any_matrix_is_triangular", "call.context.proves(implication(outside, ranges.zero), sizes)", "True",
          program="later parts of an inverse with both sides", quick=True),
        M("rows_of_the_system_unread", "implication(within, a.same)", "TRUE", program="rows of an upper inverse"),
        M("other_side", "less(k, i) if upper else less(i, k)", "less(i, k)", program="later parts of an upper inverse"),
    ),
]  # fmt: skip
