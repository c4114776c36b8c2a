"""Elements that are added, multiplied or compared at indices along a dimension: `index_add`, `scatter_reduce`.

Lemma. Let S[s] = A[s] + sum of B[t] over all t with P[t] = s. S[s] agrees in both runs where A[s] does, and B[t] does
for each t with P[t] = s. Where P is a known function of t, as t // 4, that are a few tokens. The same is true of their
product, their mean and the largest of them. P may have all dimensions of B: each element has an index of its own.

Machine-checked (proofs/symbolic/steps.v): contraction_step, reduction_step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from torch.fx import Node

from orderproof.logic.terms import FALSE, Term, conjunction, disjunction, equal, negation
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.numbers import beyond_ordinary
from orderproof.theorems.facts.open_fact import OpenFact, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.operators.scatter.scatter import IN_ANY_ORDER, SCATTER_REDUCED, scatter
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.operator_rules import operators

INDEX_ADD = operators("index_add")


@INDEX_ADD.open
@SCATTER_REDUCED.open
def sums_by_index(call: OpenOperation) -> OpenFacts:
    """A tensor to which elements are added along one dimension."""
    nodes = [x for x in call.node.args[2:4] if isinstance(x, Node)]
    if len(nodes) != 2 or (call.name in IN_ANY_ORDER and not call.dtype.is_floating_point):
        return scatter(call)
    places, added = map(call.fact, nodes)
    rank, dim = call.rank, call.dim(1)
    of_places = rank if call.name in IN_ANY_ORDER else 1
    if not isinstance(places.value, Term) or len(places.dims) != of_places or len(added.dims) != rank:
        return scatter(call)
    fact, own = with_single_axis(call.operand, dim), list(range(rank))
    others = [d for d in own if d != dim]
    if call.name in IN_ANY_ORDER and any(
        not call.context.equal_sizes(size_of(one.dims[d]), size_of(fact.dims[d]))
        for one in (places, added)
        for d in others
    ):
        return scatter(call)
    labels = ["from" if d == dim else d for d in own]
    operands: list[tuple[OpenFact, Sequence[Hashable]]] = [
        (fact, own),
        (added, labels),
        (places, labels if call.name in IN_ANY_ORDER else ["from"]),
    ]
    common = frame(operands, own)
    base, term, place = (common.place(one, labels) for one, labels in operands)
    if not isinstance(place.value, Term) or len(common.axes[dim]) != 1:
        return scatter(call)
    elsewhere = negation(equal(place.value, common.indices(dim)[0]))
    first_bound = sum(len(common.axes[label]) for label in own)
    same = call.context.for_all(conjunction(base.same, term.same | elsewhere), base.sizes, first_bound)
    loose = disjunction(*(part for one in (base, term) for part in (one.ranges().hidden, one.ranges().unbounded)))
    loose = loose if beyond_ordinary(call.node.kwargs.get("alpha", 1)) is FALSE else ~FALSE
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, base.sizes, first_bound)
    return OpenFact(tuple(common.axes[label] for label in own), call.dtype, same, unbounded=unbounded)
