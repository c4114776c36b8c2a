"""Between which of some boundaries a number is: `bucketize`, `searchsorted`.

Lemma. Let C[i] be the number of boundaries that are less than A[i]; or not greater, if equal ones count.
  1. C[i] agrees in both runs where A[i] does, and all boundaries. Where the boundaries are known, in order, and A[i] is
     a known integer, so is C[i].
Proof. The boundaries are in order, as torch requires: so the index that torch finds is the number of those before it.

Machine-checked (proofs/symbolic/steps.v): pointwise_step, reduction_step.
"""

from __future__ import annotations

from itertools import pairwise

from torch.fx import Node

from orderproof.logic.terms import Term, as_term, at_most, conditional, less
from orderproof.theorems.facts.integer_values import as_integer, whole_number
from orderproof.theorems.facts.open_fact import MAX_CASES, Cases, NotCovered, OpenFact
from orderproof.theorems.operators.movement.parts import selected
from orderproof.theorems.operators.reduction.reduction import reduction
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

BUCKETS = operators("bucketize", "searchsorted")


@BUCKETS.open
def buckets(call: OpenOperation) -> OpenFact:
    """The number of boundaries before each number."""
    given = call.node.args[:2] if call.name == "bucketize" else call.node.args[1::-1]
    if not all(isinstance(x, Node) for x in given):
        raise NotCovered("a number of the program is between boundaries")
    numbers, boundaries = map(call.fact, given)
    if len(boundaries.dims) != 1 or call.node.kwargs.get("sorter") is not None:
        raise NotCovered("each row has boundaries of its own")
    counts_equal = call.node.kwargs.get("right", False) is True or call.node.kwargs.get("side") == "right"
    if (value := _known(call, numbers, boundaries, counts_equal=counts_equal)) is not None:
        return OpenFact(numbers.dims, call.dtype, value=value)
    all_agree = reduction(call, boundaries, [0], keep=False, zeros_vanish=False).same
    return OpenFact(numbers.dims, call.dtype, numbers.same & all_agree)


def _known(call: OpenOperation, numbers: OpenFact, boundaries: OpenFact, *, counts_equal: bool) -> Term | None:
    """The number of known boundaries in order before a known integer; None of others."""
    number = None if numbers.value is None else whole_number(numbers.value)
    size = boundaries.dims[0][0] if len(boundaries.dims[0]) == 1 else as_term(1)
    if number is None or isinstance(number, Cases) or boundaries.value is None or not size.is_constant:
        return None
    if size.constant > MAX_CASES:
        return None
    count, found = as_term(0), []
    for k in range(size.constant):
        one = selected(call, boundaries, 0, as_term(k)).value if boundaries.dims[0] else boundaries.value
        one = None if one is None else whole_number(one)
        if not isinstance(one, Term) or not one.is_constant:
            return None
        found.append(one.constant)
        before = (at_most if counts_equal else less)(one, as_integer(number))
        count = count + conditional(before, as_term(1), as_term(0))
    return count if all(a <= b for a, b in pairwise(found)) else None
