"""Elements that are written, added, multiplied or compared at indices.

Lemma. Let S[s] = A[s] + sum of B[t] over all t with P[t] = s. S[s] agrees in both runs where A[s] does, and B[t] does
for each t with P[t] = s. Where P is a known function of t, as t // 4, that are a few tokens. The same is true of their
product, their mean and the largest of them. P may have all dimensions of B: each element has an index of its own.
The same is true of `scatter`: S[s] is A[s], or one of these B[t]; which one follows from P, that both runs have.
Where P[t] is not known, S[s] agrees if P[t] and B[t] do for each t. A sum to which A[s] belongs also does where B[t] is
zero in both runs, whatever P[t] is. Several P, one for each of some dimensions, are an index together: an element is
elsewhere if one of them is.

Machine-checked (proofs/symbolic/steps.v): contraction_step, reduction_step.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import torch
from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Formula, Term, conjunction, disjunction, equal, negation
from orderproof.theorems.facts.frame import Frame, Labels, frame
from orderproof.theorems.facts.moved_fact import MovedFact, still
from orderproof.theorems.facts.numbers import beyond_ordinary
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.operators.lookup.indexing import BY_INDEX, choice, from_start
from orderproof.theorems.operators.scatter.scatter import (
    IN_ANY_ORDER,
    INDEX_PUT,
    SCATTER,
    SCATTER_REDUCED,
    put_anywhere,
    put_in_a_row,
    scatter,
)
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenFacts, OpenOperation
from orderproof.theorems.walks.operator_rules import operators

INDEX_ADD = operators("index_add")
ADDS = {"index_add", "scatter_add"}


@SCATTER.open
def scatter_at_known_indices(call: OpenOperation) -> OpenFacts:
    """Elements written along one dimension."""
    if len(call.node.args) != 4 or call.node.kwargs:
        return scatter(call)
    known = _found(_at_indices, call)
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
    return scatter(call) if (found := _found(_at_indices, call)) is None else found


def _found(rule: Callable[[OpenOperation], OpenFact | None], call: OpenOperation) -> OpenFact | None:
    """The fact of a rule; None where its operands do not fit each other, as of indices that are fewer than elements."""
    try:
        return rule(call)
    except NotCovered:
        return None


def _at_indices(call: OpenOperation) -> OpenFact | None:
    """The fact about elements that come to an index along one dimension; None of parts of a dimension."""
    nodes = [x for x in call.node.args[2:4] if isinstance(x, Node)]
    if len(nodes) != 2 or (call.name in IN_ANY_ORDER and not call.dtype.is_floating_point):
        return None
    places, added = map(call.fact, nodes)
    rank, dim = call.rank, call.dim(1)
    each = call.name != "index_add"  # element has an index of its own
    of_places = rank if each else 1
    if len(places.dims) != of_places or len(added.dims) != rank:
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
    if len(common.axes[dim]) != 1:
        return None
    elsewhere = negation(equal(place.value, common.indices(dim)[0])) if isinstance(place.value, Term) else FALSE
    return _from_all(call, common, own, base, term, place.same, elsewhere)


def _from_all(
    call: OpenOperation, common: Frame, own: Labels, base: OpenFact, term: OpenFact, placed: Formula, elsewhere: Formula
) -> OpenFact:
    """The fact about a tensor to whose elements others come, from all indices that are not its own.

    Args:
        call: The operator.
        common: The frame of all operands.
        own: The labels of the result.
        base: The element that was there.
        term: An element that may come to it.
        placed: Where the index of this one is the same in both runs.
        elsewhere: Where it is known to come to another index.

    """
    vanishes = term.ranges().zero if _adds(call) else FALSE
    first_bound = sum(len(common.axes[label]) for label in own)
    agrees = disjunction(placed & term.same, elsewhere, vanishes)
    same = call.context.for_all(conjunction(base.same, agrees), base.sizes, first_bound)
    loose = disjunction(*(part for one in (base, term) for part in (one.ranges().hidden, one.ranges().unbounded)))
    loose = loose if beyond_ordinary(call.node.kwargs.get("alpha", 1)) is FALSE else ~FALSE
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, base.sizes, first_bound)
    return OpenFact(tuple(common.axes[label] for label in own), call.dtype, same, unbounded=unbounded)


def _adds(call: OpenOperation) -> bool:
    """True if elements are added to what was there, so that a zero changes nothing wherever it comes to."""
    if call.name == "scatter_reduce":
        return bool(call.argument(4, "reduce") == "sum" and call.argument(5, "include_self", True) is True)
    return call.name in ADDS or call.argument(3, "accumulate") is True


@INDEX_PUT.open
def put(call: OpenOperation) -> OpenFacts:
    """Elements written, or added, at indices for some dimensions."""
    found = put_in_a_row(call)
    found = _found(_put_at_indices, call) if found is None else found
    return put_anywhere(call) if found is None else found


@INDEX_PUT.moved
def moved_put(call: MovedOperation) -> MovedFact:
    """Elements written at indices; those that are added may come in any order, together with their indices."""
    found, fact = choice(call), call.operand
    for dim in found.chosen:
        fact = fact.with_dim(dim, still(fact.dims[dim], BY_INDEX))
    values = call.fact(call.argument(2, "values"))
    others = [(values, found.result[len(found.result) - len(values.dims) :])]
    others += [(call.fact(node), labels) for node, labels in found.chosen.values()]
    for one, labels in others if call.argument(3, "accumulate", False) is not True else ():
        for own, label in zip(one.dims, labels, strict=True):
            if not isinstance(label, int):
                still(own, BY_INDEX)
    return call.combined([(fact, range(call.rank)), *others], range(call.rank))


def _put_at_indices(call: OpenOperation) -> OpenFact | None:
    nodes = [x for x in call.argument(1, "indices") if isinstance(x, Node)]
    if not nodes or any(x.meta["val"].dtype is torch.bool for x in nodes):
        return None
    found, fact, own = choice(call), call.operand, list(range(call.rank))
    for dim in found.chosen:
        fact = with_single_axis(fact, dim)
    values = call.fact(call.argument(2, "values"))
    new = len(found.result) - len(values.dims)
    if new < 0:
        return None
    labels = found.result[new:]
    places = {d: (call.fact(node), own_labels) for d, (node, own_labels) in found.chosen.items()}
    common = frame([(fact, own), (values, labels), *places.values()], own)
    if any(len(common.axes[d]) != 1 for d in places):
        return None
    base, term = common.place(fact, own), common.place(values, labels)
    placed, elsewhere = TRUE, FALSE
    for d, (one, of_one) in places.items():
        at = common.place(one, of_one)
        placed &= at.same
        if isinstance(at.value, Term):
            value = from_start(call, at.value, common.axes[d][0], base.sizes)
            elsewhere |= negation(equal(value, common.indices(d)[0]))
    return _from_all(call, common, own, base, term, placed, elsewhere)
