"""Softmax and maxima along lines in which some entries are masked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import INDEPENDENT, INF, ORDINARY_LIMIT, BoolArray, Fact
from orderproof.recheck.forms.einsum import ALL, ALONG, OUTSIDE, Einsum


def line_dims(call: BoundCall, rank: int) -> tuple[int, ...]:
    """The dimensions of `dim`, all if it is missing or empty."""
    return tuple(d % max(rank, 1) for d in call.integers("dim") or range(rank))


@dataclass(frozen=True)
class MaskedLines:
    """The entries of a fact's lines along `dims` that certainly contribute nothing next to a visible one."""

    fact: Fact  # with the dependence of those entries removed, where their images contribute nothing either
    contributes_nothing: BoolArray
    has_no_upper_infinity: BoolArray  # of each line


def masked_lines(algebra: FactAlgebra, f: Fact, dims: tuple[int, ...], *, safe: bool = False) -> MaskedLines:
    """A masked entry vanishes next to a visible one: exactly if it is -inf, by assumption if it is finite.

    `safe`: a line of -inf alone gives zeros, so that -inf vanishes in every line.
    """
    bounded: BoolArray = np.all(f.high < INF, axis=dims, keepdims=True)
    has_visible = (f.low > f.masking_threshold / 10).any(axis=dims, keepdims=True)
    masked, absent = f.high <= f.masking_threshold, f.high == -INF
    beside_visible = masked & has_visible & (absent | algebra.finite_scores_assumed)
    nothing: BoolArray = bounded & (beside_visible | (absent & safe))
    in_both_runs = algebra.holds_at_images(nothing, f.moves)
    fact = replace(f, dependence=np.where(in_both_runs, INDEPENDENT, f.dependence))
    return MaskedLines(fact, nothing, bounded)


@dataclass(frozen=True)
class Softmax:
    """A softmax or, with `logarithm`, its logarithm; a `safe` one gives zeros for a line of -inf."""

    logarithm: bool = False
    safe: bool = False
    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        f = call.fact("self")
        return [self.of_scores(algebra, f, line_dims(call, len(f.shape)), outputs[0])]

    def of_scores(self, algebra: FactAlgebra, f: Fact, dims: tuple[int, ...], out: Fact) -> Fact:
        """The fact about the softmax of scores along these dimensions."""
        lines = masked_lines(algebra, f, dims, safe=self.safe)
        has_finite = (f.low > -INF).any(axis=dims, keepdims=True)
        is_number = lines.has_no_upper_infinity & (self.safe | has_finite)
        dependence = lines.fact.dependence.max(axis=dims, keepdims=True)
        low, high = np.where(is_number, 0, -INF), np.where(is_number, 1 - lines.contributes_nothing, INF)
        if self.logarithm:
            dependence = np.maximum(dependence, f.dependence)
            low, high = np.where(is_number & (f.low > -INF), -1, -INF), np.where(is_number, 1, INF)
        return algebra.derived(replace(out, moves=f.moves), dependence, low, high)


@dataclass(frozen=True)
class MaskedMaximum:
    """The maximum of each line or, with `log_sum_exp`, its logarithm of a sum of exponentials."""

    log_sum_exp: bool = False
    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        f = call.fact("self")
        dims = line_dims(call, len(f.shape))
        lines = masked_lines(algebra, f, dims)
        below = (f.high < ORDINARY_LIMIT).all(axis=dims, keepdims=True)
        ordinary = lines.has_no_upper_infinity & f.is_ordinary.any(axis=dims, keepdims=True) & below
        excess = math.log(math.prod(f.shape[d] for d in dims)) if self.log_sum_exp else 0
        greatest = f.high.max(axis=dims, keepdims=True) + excess
        low = np.where(ordinary, -1, -INF)
        high = np.where(ordinary, 1, greatest)
        high = np.where(ordinary | (greatest <= f.masking_threshold), high, INF)
        if not call.flag("keepdim"):
            low, high = low.squeeze(dims), high.squeeze(dims)
        reduction = Einsum((ALL,), OUTSIDE, later_by_position=ALONG)
        first, *rest = reduction.of_facts(algebra, call, outputs, [lines.fact])
        return [replace(first, low=low, high=high), *rest]
