"""Determinants, roots and exponentials of matrices that are made of tokens, and systems for each token."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.moved_programs import Case as MovedCase
from tests.theorems.programs import WIDTH, Case, Program

BOTH, IN_ROWS = frozenset({"causal", "batch"}), frozenset({"batch"})


def _moments(m: Program, x: Tensor, *, so_far: bool) -> Tensor:
    """Second moments of the tokens so far, or of all [row, token, feature, feature]."""
    h = m.first(x).tanh()
    each = torch.einsum("bti,btj->btij", h, h)
    return (each.cumsum(1) if so_far else each.sum(1, keepdim=True).expand_as(each)) + torch.eye(WIDTH)


def _whitened(m: Program, x: Tensor, *, left: bool = True) -> Tensor:
    """Tokens times the inverse root of their covariance, or that of its transpose."""
    h = m.first(x)
    root = torch.linalg.cholesky(h.mT @ h + torch.eye(WIDTH))
    if left:
        return torch.linalg.solve_triangular(root, h.mT, upper=False).mT
    return torch.linalg.solve_triangular(root, h, upper=False, left=False)


PROGRAMS = [
    Case("log determinant so far", lambda m, x: x + torch.logdet(_moments(m, x, so_far=True))[..., None], BOTH),
    Case("log determinant of all", lambda m, x: x + torch.logdet(_moments(m, x, so_far=False))[..., None], IN_ROWS),
    Case("determinant so far", lambda m, x: x + torch.det(_moments(m, x, so_far=True)).log()[..., None], BOTH),
    Case("root of the moments so far", lambda m, x: torch.linalg.cholesky(_moments(m, x, so_far=True)).sum(-1), BOTH),
    Case("root of the moments of all", lambda m, x: torch.linalg.cholesky(_moments(m, x, so_far=False)).sum(-1),
         IN_ROWS),
    Case("exponential of scores", lambda m, x: torch.matrix_exp((m.first(x) @ m.second(x).mT).tanh()) @ x, IN_ROWS),
    Case("whitened by all tokens", _whitened, IN_ROWS),
]  # fmt: skip
MOVED_PROGRAMS = [
    MovedCase("whitened tokens", lambda m, x, p: _whitened(m, x)),
    MovedCase("tokens whitened from the right", lambda m, x, p: _whitened(m, x, left=False)),
    MovedCase("differences by a system of places", lambda m, x, p: torch.linalg.solve_triangular(
        torch.ones(x.shape[1], x.shape[1]).tril().expand(x.shape[0], -1, -1), x, upper=False), equivariant=False),
    MovedCase("a system of tokens", lambda m, x, p: torch.linalg.solve_triangular(
        (m.first(x) @ x.mT).tril(-1) + torch.eye(x.shape[1]), x, upper=False), equivariant=False),
]  # fmt: skip
MUTANTS = [
    *mutants_of(
        "theorems.operators.triangular.matrix_functions",
        M("one_row_is_read", "[batch, batch + 1]", "[batch]", program="root of the moments so far"),
        M("nothing_is_read", "whole.same", "TRUE", program="log determinant of all", quick=True),
    ),
    *mutants_of(
        "theorems.operators.triangular.triangular_solve",
        M("solved_along_the_other_side", "rank - 2 if call.argument(3, 'left', True) else rank - 1", "rank - 2",
          program="moved: tokens whitened from the right"),
        M("rows_that_move", "still(right.dims[solved], what)", "right.dims[solved]",
          program="moved: differences by a system of places", quick=True),
    ),
]  # fmt: skip
