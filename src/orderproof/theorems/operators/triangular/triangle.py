"""A matrix with zeros on one side of a diagonal.

Lemma. An element on the other side is that of the operand.
  1. It agrees in both runs where that element does; the zeros always do.
  2. Moved along the rows or the columns: nothing follows, since the indices of two tokens are compared.

Machine-checked (proofs/symbolic/steps.v): piecewise_step.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from orderproof.logic.terms import as_term, at_most, negation
from orderproof.theorems.facts.moved_fact import MovedFact, still
from orderproof.theorems.facts.numbers import of_number
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import number
from orderproof.theorems.walks.operator_rules import operators

TRIANGLE = operators("tril", "triu")


@TRIANGLE.open
def triangle(call: OpenOperation) -> OpenFact:
    """A matrix with zeros on one side of a diagonal."""
    rank = len(call.operand.dims)
    fact = with_single_axis(with_single_axis(call.operand, rank - 2), rank - 1)
    row, column = fact.indices(rank - 2) or [as_term(0)], fact.indices(rank - 1) or [as_term(0)]
    offset = number(call.argument(1, "diagonal", 0))
    if offset is None:
        raise NotCovered("a diagonal is not known")
    kept = at_most(column[0], row[0] + offset) if call.name == "tril" else at_most(row[0] + offset, column[0])
    return piecewise([(kept, fact), (negation(kept), of_number(fact, 0))], fact.dtype)


@TRIANGLE.moved
def moved_triangle(call: MovedOperation) -> MovedFact:
    """Zeros on one side of a diagonal."""
    dims = call.operand.dims
    what = "the indices of two tokens are compared"
    return MovedFact((*dims[:-2], still(dims[-2], what), still(dims[-1], what)))
