"""Elements of a second tensor at the places where a mask is true: `masked_scatter`, as features of images among tokens.

Lemma. Let M be the same in both runs, and C[i] = B[n(i)] where M[i], with n(i) the number of true elements before i,
and C[i] = A[i] elsewhere. C[i] agrees in both runs where A[i] does and M[i] is false, and where M[i] is true and all of
B agrees: n is one function, since M is one.

Machine-checked (proofs/symbolic/steps.v): where_step, lookup_any_step.
"""

from __future__ import annotations

from orderproof.logic.terms import FALSE, TRUE, Formula, negation
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

MASKED_SCATTER = operators("masked_scatter")


@MASKED_SCATTER.open
def masked_scatter(call: OpenOperation) -> OpenFact:
    """Elements of another tensor, one after the other, where a mask is true."""
    fact, mask, source = (call.fact(x) for x in call.node.args[:3])
    if not isinstance(mask.value, Formula):
        raise NotCovered("how many elements are written before each depends on tokens")
    rank = len(fact.dims)
    labels = range(rank - len(mask.dims), rank)
    common = frame([(fact, range(rank)), (mask, labels)], range(rank))
    here, own = common.place(mask, labels).value, common.place(fact, range(rank))
    assert isinstance(here, Formula)
    ranges = source.ranges()
    loose = ranges.hidden | ranges.unbounded
    agrees = TRUE if source.same is TRUE else call.context.for_all(source.same, source.sizes, 0)
    any_of = OpenFact(own.dims, source.dtype, agrees, unbounded=FALSE if loose is FALSE else TRUE)
    return piecewise([(here, any_of), (negation(here), own)], call.dtype)
