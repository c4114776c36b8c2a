"""Triangular systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import DIMENSION_LABELS, IDENTITY, INDEPENDENT, UNIFORM, Fact
from orderproof.recheck.labelled import labelled_fact


@dataclass(frozen=True)
class TriangularSolve:
    """A X = B: the triangle is cut out of A, and an unknown depends on its row of both, and on those solved before."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        (out,) = outputs
        if 0 in out.shape:
            return [algebra.derived(out, INDEPENDENT)]
        upper, left = call.flag("upper"), call.flag("left")
        triangle = _triangle(call.fact("self"), upper=upper, unit_diagonal=call.flag("unitriangular"))

        # x: the unknown, y: an unknown that its equation has, z: the system with this right-hand side.
        batch = DIMENSION_LABELS[: len(out.shape) - 2]
        right, result = call.fact("B"), batch + ("xz" if left else "zx")
        labels = batch + ("xy" if left else "yx")
        operands = [(triangle, labels[-len(triangle.shape) :]), (right, result[-len(right.shape) :])]
        fact = labelled_fact(algebra, out, operands, result, by_position="xy")

        axis = -2 if left else -1
        last_first = upper == left
        dependence = np.flip(fact.dependence, axis) if last_first else fact.dependence
        dependence = np.maximum.accumulate(dependence, axis=axis)
        dependence = np.flip(dependence, axis) if last_first else dependence
        low, high = fact.low.min(axis=axis, keepdims=True), fact.high.max(axis=axis, keepdims=True)
        return [algebra.derived(fact, dependence, low, high)]


def _triangle(matrix: Fact, *, upper: bool, unit_diagonal: bool) -> Fact:
    """The fact about a matrix with zeros in place of the elements that are not read."""
    size = matrix.shape[-1]
    below = np.tri(size, k=-1 if unit_diagonal else 0, dtype=bool)
    read = below.T if upper else below
    rows_and_columns = tuple(IDENTITY if move == UNIFORM else move for move in matrix.moves[-2:])
    return replace(
        matrix,
        moves=matrix.moves[:-2] + rows_and_columns,
        dependence=np.where(read, matrix.dependence, INDEPENDENT),
        low=np.where(read, matrix.low, 0),
        high=np.where(read, matrix.high, 0),
        constant_value=None,
    )
