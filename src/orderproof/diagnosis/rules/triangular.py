"""Triangular systems: a row of the solution reads the triangle and the right-hand side up to that row.

Lemma (triangular_solve_dependence). Let A X = B with A lower triangular:
X[b,i,k] = (B[b,i,k] - sum_{j<i} A[b,i,j] X[b,j,k]) / A[b,i,i], where A[b,i,i] is 1 in a unitriangular system.
  1. X[b,i,k] depends on what A[b,i',j] depends on, for j <= i' <= i (j < i' if the system is unitriangular), and on
     what B[b,i',k] depends on, for i' <= i. The other elements of A are not read.
  2. A and B moved in the same way along b, or B moved along k, give X moved in the same way.
  3. Moved along i or j, X is not determined. A = [[1, 2], [3, 4]] and B = [1, 1] give X = [1, -1/2]. With the rows of A
     exchanged, X is [1/3, 1/3]; with the columns, [1/2, -1/3]; with both, [1/4, 1/2]. A = [[1, 0], [1, 1]] gives
     [1, -1] for B = [1, 0], and [0, 1] for B = [0, 1].
For an upper triangle, reverse the rows and columns of A and the rows of B; for X A = B, transpose all three.
Proof. 1: by induction over i, X[b,j,k] with j < i reads only such elements. 2: b and k are free in the equation.
Arithmetic: over the reals; in floating point the order of the sums may differ with k. A diagonal that is read may
be zero: then X is infinite or NaN, so nothing is assumed about its size.
Machine-checked (proofs/rules/triangular_lemma.v): triangular_solve_dependence, triangular_columns,
triangular_not_determined.
Not machine-checked: floating point.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from orderproof.diagnosis.domain.axis_labels import align_to_labels
from orderproof.diagnosis.domain.fact import NEVER, DependenceArray, Fact, compress
from orderproof.diagnosis.domain.move import STILL, Move, is_permuted
from orderproof.diagnosis.operands import Operand, common_moves, dependence_under_moves, labelled_operand
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, rule, shape_of

BY_POSITION = ("i", "j")


@rule("triangular_solve_dependence", "linalg_solve_triangular")
def solve_triangular(call: OperatorCall) -> Fact:
    """A X = B, or X A = B."""
    system, right = call.args[:2]
    upper, left = call.argument(2, "upper"), call.argument(3, "left", True)
    unitriangular = call.argument(4, "unitriangular", False)
    batch = [str(d) for d in range(len(call.shape) - 2)]
    of_system, of_result = [*batch, *("ij" if left else "ji")], [*batch, *("ik" if left else "ki")]
    matrix = labelled_operand(call, system, of_system[-len(shape_of(system)) :], 0)
    values = labelled_operand(call, right, of_result[-len(shape_of(right)) :], 1)
    moves = {x: STILL if x in BY_POSITION else m for x, m in common_moves(call, [matrix, values]).items()}

    read = np.tri(shape_of(system)[-1], k=-1 if unitriangular else 0, dtype=bool)  # of [i, j]
    first_to_last = upper != left  # the order in which the rows are solved
    triangle = _dependence(call, matrix, moves, [*batch, "i", "j"])
    triangle = np.where(read if first_to_last else read.T, triangle, NEVER)
    of_row = triangle.max(axis=-1, keepdims=True, initial=NEVER)
    own = np.maximum(of_row, _dependence(call, values, moves, [*batch, "i", "k"]))
    order = slice(None, None, 1 if first_to_last else -1)
    dependence = np.maximum.accumulate(own[..., order, :], axis=-2)[..., order, :]

    dependence = dependence if left else dependence.swapaxes(-1, -2)
    return Fact(call.shape, tuple(moves.get(x, STILL) for x in of_result), compress(dependence))


def _dependence(call: OperatorCall, operand: Operand, moves: dict[str, Move], order: list[str]) -> DependenceArray:
    """The dependence of an operand with its dimensions in this order; refuses one that moves along i or j."""
    fact, labels = operand.fact, operand.labels
    if any(x in BY_POSITION and is_permuted(m) for x, m in zip(labels, fact.moves, strict=True)):
        raise RuleNotApplicable(f"{call.target} solves the rows in order, and one of its operands moves along them")
    unmoved = tuple(STILL if x in BY_POSITION else m for x, m in zip(labels, fact.moves, strict=True))
    operand = Operand(Fact(fact.shape, unmoved, fact.dependence, fact.ranges), labels, operand.node, operand.argument)
    return cast(DependenceArray, align_to_labels(dependence_under_moves(call, operand, moves), labels, order))
