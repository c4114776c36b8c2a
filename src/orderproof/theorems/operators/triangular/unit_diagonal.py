"""Matrices with a diagonal of ones, and their inverses.

Lemma. Let A be lower triangular with a diagonal of ones, as the identity plus a matrix with zeros from the diagonal on.
  1. X = A^-1 solves A X = I: row i of X reads rows of A up to i, and X[i, k] is zero for k > i. For an upper triangle
     the order of rows is reversed. The inverse of another matrix reads all of it, and may be anything.
  2. Moved along rows or columns: nothing follows.

Machine-checked (proofs/rules/triangular_lemma.v): triangular_solve_dependence, inverse_is_triangular.
Not machine-checked: that torch's inverse of a triangular matrix is one; its rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Formula, Term, as_term, at_most, conjunction, equal, implication, less
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.open_fact import Cases, NotCovered, OpenFact
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.operators.pointwise.operands import KEEPS, operands_of
from orderproof.theorems.operators.reduction.reduction import reduction
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import operator_of
from orderproof.theorems.walks.operator_rules import operators


def has_unit_diagonal(call: OpenOperation, matrix: Any) -> bool:
    """True for a matrix that is the identity plus, or less, one with zeros on the diagonal."""
    while isinstance(matrix, Node) and operator_of(matrix) in KEEPS:
        matrix = matrix.args[0]
    if not isinstance(matrix, Node) or operator_of(matrix) not in ("add", "sub") or matrix.kwargs:
        return False
    if not all(isinstance(x, Node) for x in matrix.args) or call.rank_of(matrix) < 2:
        return False
    operands = operands_of(OpenOperation(matrix, call.facts, (call.fact(matrix).shape,), call.context))
    first, second = (operands.fact(x) for x in matrix.args)
    pairs = [(first, second)] if operator_of(matrix) == "sub" else [(first, second), (second, first)]
    return any(_is_identity_plus(call, one, other) for one, other in pairs)


def _is_identity_plus(call: OpenOperation, identity: OpenFact, other: OpenFact) -> bool:
    if not isinstance(identity.value, Cases):
        return False
    row, column = (_index(identity, d) for d in (-2, -1))
    ones = conjunction(identity.value.where(lambda v: v == 1), other.ranges().zero)
    return ones is not FALSE and call.context.proves(implication(equal(row, column), ones), identity.sizes)


def _index(fact: OpenFact, dim: int) -> Term:
    """The index along a dimension with one axis, or none. Raises `NotCovered`."""
    found = fact.indices(dim % len(fact.dims))
    if len(found) > 1:
        raise NotCovered("the rows of a matrix are merged")
    return found[0] if found else as_term(0)


INVERSE = operators("linalg_inv_ex")


@INVERSE.open
def inverse(call: OpenOperation) -> tuple[OpenFact, ...]:
    """The inverse of each matrix, and a number that says if there is one."""
    fact = call.operand
    rank = len(fact.dims)
    for dim in (rank - 2, rank - 1):
        fact = with_single_axis(fact, dim)
    whole = reduction(call, fact, [rank - 2, rank - 1], keep=False, zeros_vanish=False)
    info = OpenFact(whole.dims, torch.int32, whole.same)
    batch = list(range(rank - 2))
    own, read = [*batch, "i", "k"], [*batch, "p", "j"]
    common = frame([(OpenFact(fact.dims, call.dtype), own), (fact, read)], own)
    a = common.place(fact, read)
    (i,), (k,), (p,), (j,) = (common.indices(label) or [as_term(0)] for label in ("i", "k", "p", "j"))
    sizes = tuple(size for axes in common.dims for size in axes)
    first_bound = sum(len(common.axes[label]) for label in own)
    found = OpenFact(fact.dims, call.dtype, call.context.for_all(a.same, sizes, first_bound), unbounded=TRUE)
    if not has_unit_diagonal(call, call.node.args[0]):
        return found, info
    ranges = a.ranges()
    loose = ranges.hidden | ranges.unbounded
    for upper in (False, True):
        outside = less(j, p) if upper else less(p, j)
        if call.context.proves(implication(outside, ranges.zero), sizes):
            above: Formula = less(k, i) if upper else less(i, k)
            within = conjunction(at_most(i, p), at_most(p, j)) if upper else conjunction(at_most(p, i), at_most(j, p))
            same = call.context.for_all(implication(within, a.same), sizes, first_bound)
            bounded = TRUE if loose is FALSE else call.context.for_all(implication(within, ~loose), sizes, first_bound)
            return OpenFact(fact.dims, call.dtype, same | above, zero=above & bounded, unbounded=~bounded), info
    return found, info
