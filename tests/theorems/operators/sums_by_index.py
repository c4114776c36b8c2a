"""Tokens that are added at an index, and what is read of the sums."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import WIDTH, Case, Program

BOTH, IN_ROWS = frozenset({"causal", "batch"}), frozenset({"batch"})


def _segments(x: Tensor, size: int = 2) -> Tensor:
    return torch.arange(x.shape[1]) // size


def _sums(m: Program, x: Tensor, segment: Tensor) -> Tensor:
    """The sum of the tokens of each segment, one segment more than there may be."""
    zeros = x.new_zeros(x.shape[0], x.shape[1] // 2 + 1, WIDTH)
    return zeros.index_add(1, segment, m.first(x))


def _read(m: Program, x: Tensor, before: int) -> Tensor:
    """Each token with the sum of a segment before its own."""
    sums = _sums(m, x, _segments(x))
    later = torch.cat([sums.new_zeros(x.shape[0], before, WIDTH), sums], 1)
    return x + later.index_select(1, _segments(x))


def _by_their_own(m: Program, x: Tensor) -> Tensor:
    return m.second(x).index_add(1, torch.arange(x.shape[1]), m.first(x), alpha=0.5)


PROGRAMS = [
    Case("sums of the segment before", lambda m, x: _read(m, x, 1), BOTH),
    Case("sums of the own segment", lambda m, x: _read(m, x, 0), IN_ROWS),
    Case("sums at their own places", _by_their_own, BOTH),
    Case("sums at the place before", lambda m, x: m.second(x).index_add(
        1, (torch.arange(x.shape[1]) - 1).clamp(min=0), m.first(x)), IN_ROWS),
    Case("sums over others", lambda m, x: m.second(x).flip(1).index_add(
        1, torch.arange(x.shape[1]), m.first(x)), IN_ROWS),
]  # fmt: skip
MUTANTS = mutants_of(
    "theorems.operators.scatter.sums_by_index",
    M("only_elements_elsewhere", "term.same | elsewhere", "term.same | ~elsewhere", program="sums at their own places"),
    M(
        "what_was_there_does_not_count",
        "conjunction(base.same, term.same | elsewhere)",
        "conjunction(term.same | elsewhere)",
        program="sums over others",
    ),
)
