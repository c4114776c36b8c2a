"""Elements that are written, added, multiplied or compared at known indices along a dimension.

Lemma. Let S[s] = A[s] + sum of B[t] over all t with P[t] = s. S[s] agrees in both runs where A[s] does, and B[t] does
for each t with P[t] = s. Where P is a known function of t, as t // 4, that are a few tokens. The same is true of their
product, their mean and the largest of them. P may have all dimensions of B: each element has an index of its own.
The same is true of `scatter`: S[s] is A[s], or one of these B[t]; which one follows from P, that both runs have.

Machine-checked (proofs/symbolic/steps.v): contraction_step, reduction_step.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from torch.fx import Node

from orderproof.logic.terms import FALSE, Term, conjunction, disjunction, equal, negation
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.numbers import beyond_ordinary
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.operators.scatter.scatter import IN_ANY_ORDER, SCATTER, SCATTER_REDUCED, scatter
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.operator_rules import operators

INDEX_ADD = operators("index_add")


@SCATTER.open
def scatter_at_known_indices(call: OpenOperation) -> OpenFacts:
    """Elements written along one dimension."""
    if len(call.node.args) != 4 or call.node.kwargs:
        return scatter(call)
    known = _at_known_indices(call)
    try:
        found = scatter(call)
    except NotCovered:
        if known is None:
            raise
        return known
    if known is None or not isinstance(found, OpenFact) or known.dims != found.dims:
        return found
    return replace(found, same=found.same | known.same, unbounded=found.unbounded & known.unbounded)


@INDEX_ADD.open
@SCATTER_REDUCED.open
def sums_by_index(call: OpenOperation) -> OpenFacts:
    """A tensor to which elements are added along one dimension."""
    return scatter(call) if (found := _at_known_indices(call)) is None else found


def _at_known_indices(call: OpenOperation) -> OpenFact | None:
    """The fact about elements that come to indices whose values are known; None of others."""
    nodes = [x for x in call.node.args[2:4] if isinstance(x, Node)]
    if len(nodes) != 2 or (call.name in IN_ANY_ORDER and not call.dtype.is_floating_point):
        return None
    places, added = map(call.fact, nodes)
    rank, dim = call.rank, call.dim(1)
    each = call.name != "index_add"  # element has an index of its own
    of_places = rank if each else 1
    if not isinstance(places.value, Term) or len(places.dims) != of_places or len(added.dims) != rank:
        return None
    fact, own = with_single_axis(call.operand, dim), list(range(rank))
    others = [d for d in own if d != dim]
    if each and any(
        not call.context.equal_sizes(size_of(one.dims[d]), size_of(fact.dims[d]))
        for one in (places, added)
        for d in others
    ):
        return None
    labels = ["from" if d == dim else d for d in own]
    operands: list[tuple[OpenFact, Sequence[Hashable]]] = [
        (fact, own),
        (added, labels),
        (places, labels if each else ["from"]),
    ]
    common = frame(operands, own)
    base, term, place = (common.place(one, labels) for one, labels in operands)
    if not isinstance(place.value, Term) or len(common.axes[dim]) != 1:
        return None
    elsewhere = negation(equal(place.value, common.indices(dim)[0]))
    first_bound = sum(len(common.axes[label]) for label in own)
    same = call.context.for_all(conjunction(base.same, term.same | elsewhere), base.sizes, first_bound)
    loose = disjunction(*(part for one in (base, term) for part in (one.ranges().hidden, one.ranges().unbounded)))
    loose = loose if beyond_ordinary(call.node.kwargs.get("alpha", 1)) is FALSE else ~FALSE
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, base.sizes, first_bound)
    return OpenFact(tuple(common.axes[label] for label in own), call.dtype, same, unbounded=unbounded)
