"""Operators that write elements to places given by integer indices.

Lemma. Which element is written where is only followed at indices that go on by one, as those of a range: there an
element of the result is the written one, elsewhere that of the tensor.
  1. Along the dimension of the indices, an element of the result agrees in both runs where the element that was there
     agrees, and all indices and written elements along that dimension do. The largest scores of a row, written to their
     own indices, are the scores there: an element is as large as one of two.
  2. Moved along another dimension, all operands give the result moved. Along the dimension of the indices, nothing
     may move: the index of a token is the place of another one. But indices and written elements may move together if
     those with the same index are added, multiplied or compared: their order does not matter.

Machine-checked (proofs/symbolic/steps.v): piecewise_step.
Machine-checked (proofs/rules/scatter_lemma.v): write_dependence, write_of_own_scores, reduced_writes_in_any_order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Term, as_term, at_most, conjunction, disjunction, less, negation
from orderproof.theorems.facts.frame import converted, frame
from orderproof.theorems.facts.moved_fact import MovedFact, aligned, size, still
from orderproof.theorems.facts.numbers import number_fact
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, index, size_of
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.facts.reindexing import with_axes, with_single_axis
from orderproof.theorems.operators.lookup.gathering import moved_slices
from orderproof.theorems.operators.lookup.indexing import BY_INDEX
from orderproof.theorems.operators.pointwise.value_ranges import either_of
from orderproof.theorems.walks.largest_scores import values_at_places
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operator_rules import operators

SCATTER = operators("scatter")
SCATTER_REDUCED = operators("scatter_add", "scatter_reduce")  # torch refuses a reduction that is not symmetric
IN_ANY_ORDER = {"scatter_add", "scatter_reduce"}
INDEXED_WRITE = operators("index_copy", "index_fill")


@INDEXED_WRITE.open
def scatter(call: OpenOperation) -> OpenFact:
    """Elements written along one dimension."""
    fact = call.operand
    dim = int(call.argument(1, "dim")) % max(len(fact.dims), 1)
    if call.name == "index_copy" and (found := _written_in_a_row(call, dim, *call.node.args[2:4])) is not None:
        return found
    others = [call.fact(x) if isinstance(x, Node) else number_fact(x, call.dtype) for x in call.node.args[2:4]]
    others += [
        number_fact(call.node.kwargs[name], call.dtype) for name in ("value", "alpha") if name in call.node.kwargs
    ]
    rank = len(fact.dims)
    labels = [list(range(rank)) if len(f.dims) == rank else [dim] * len(f.dims) for f in others]
    found = written(call, fact, [dim], list(zip(others, labels, strict=True)))
    one = values_at_places(call) if call.name == "scatter" else None
    own = one is not None and (one.dim, one.dims) == (dim, tuple(range(rank)))
    return _of_scores(call, found, call.fact(one.scores)) if one is not None and own else found


def _of_scores(call: OpenOperation, found: OpenFact, scores: OpenFact) -> OpenFact:
    """A tensor into which scores are written at their own places: an element is the score there, or what was there."""
    labels = range(len(found.dims))
    common = frame([(call.operand, labels), (scores, labels)], labels)
    if common.dims != found.dims:
        return found
    either = either_of(common.place(call.operand, labels).ranges(), common.place(scores, labels).ranges())
    return replace(found, hidden=either.hidden, unbounded=either.unbounded, low=either.low)


@SCATTER.moved
@SCATTER_REDUCED.moved
def moved_scatter(call: MovedOperation) -> MovedFact:
    """Elements along one dimension replaced, at an index for each."""
    dim = int(call.argument(1, "dim")) % max(call.rank, 1)
    facts = [call.fact(x) for x in (call.node.args[0], *call.node.args[2:4]) if isinstance(x, Node)]
    own = still(facts[0].dims[dim], BY_INDEX)
    others = [fact.dims[dim] for fact in facts[1:]]
    if call.name in IN_ANY_ORDER and len(others) == 2 and call.context.equal_sizes(*map(size, others)):
        aligned(others, call.context.equal_sizes)
    else:
        for one in others:
            still(one, BY_INDEX)
    return moved_slices(call, [fact.with_dim(dim, ()) for fact in facts], dim).with_dim(dim, own)


INDEX_PUT = operators("index_put", "_unsafe_index_put", "index_put_")


def put_in_a_row(call: OpenOperation) -> OpenFact | None:
    """Elements written at one index after the other, along one dimension; None of other indices."""
    given = list(call.argument(1, "indices"))
    chosen = [d for d, x in enumerate(given) if x is not None]
    if len(chosen) != 1 or call.argument(3, "accumulate", False):
        return None
    return _written_in_a_row(call, chosen[0], given[chosen[0]], call.argument(2, "values"))


def put_anywhere(call: OpenOperation) -> OpenFact:
    """Elements written at indices of which nothing is known: every element may be written."""
    fact = call.operand
    indices = [x for x in call.argument(1, "indices") if x is not None]
    others = [call.fact(x) for x in [*indices, call.argument(2, "values")]]
    if any(not isinstance(x, Node) for x in indices):
        raise NotCovered("elements are written at unknown places")
    everywhere = [(f, [f"other {k} {d}" for d in range(len(f.dims))]) for k, f in enumerate(others)]
    return written(call, fact, [], everywhere)


def _written_in_a_row(call: OpenOperation, dim: int, indices: Any, values: Any) -> OpenFact | None:
    """A tensor into which elements are written at one index after the other; None at other indices."""
    if not isinstance(indices, Node) or not isinstance(values, Node):
        return None
    places, source = call.fact(indices), call.fact(values)
    if len(places.dims) != 1 or len(places.sizes) != 1 or not isinstance(places.value, Term):
        return None
    count, start = places.sizes[0], places.value - index(0)
    fact, rank = with_single_axis(call.operand, dim), call.rank
    inside = at_most(0, start)  # a place after the last one is refused by torch, a negative one counts from the end
    if start.variables & index(0).variables or not call.context.proves(inside, ()):
        return None
    source = replace(source, dims=((),) * (rank - len(source.dims)) + source.dims)
    at = (fact.indices(dim) or [as_term(0)])[0]
    terms: list[Term] = []
    for d, axes in enumerate(source.dims):
        if d == dim and axes:
            terms.append(at - start)
        elif axes:
            first = fact.first_axis(d)
            own = [index(first + k) for k in range(len(fact.dims[d]))]
            terms += converted(axes, fact.dims[d], own, used=source.uses(d))
    here = conjunction(at_most(start, at), less(at, start + count))
    return piecewise([(here, source.at(fact.dims, terms)), (negation(here), fact)], fact.dtype)


def written(
    call: OpenOperation, fact: OpenFact, dims: Sequence[int], others: Sequence[tuple[OpenFact, Sequence[object]]]
) -> OpenFact:
    """The fact about a tensor into which others are written, anywhere along some dimensions.

    Args:
        call: The operator.
        fact: The fact about the tensor that is written to.
        dims: The dimensions along which elements may be written anywhere.
        others: Indices and written tensors, with a label for each dimension: that of the tensor, or another one.

    """
    rank = len(fact.dims)
    result = list(range(rank))
    apart = [(f, [f"along {d}" if d in dims else d for d in labels]) for f, labels in others]
    for f, labels in apart:
        for d, label in enumerate(labels):
            if isinstance(label, int) and f.uses(d) and size_of(f.dims[d]) is not size_of(fact.dims[label]):
                raise NotCovered("elements are written to a part of a dimension")
    apart = [(_matching(f, labels, fact), labels) for f, labels in apart]
    common = frame([(fact, result), *apart], result)
    placed = common.place(fact, result)
    own = [common.place(f, labels) for f, labels in apart]
    sizes = placed.sizes
    bound = sum(len(common.axes[label]) for label in result)
    same = call.context.for_all(conjunction(placed.same, *(f.same for f in own)), sizes, bound)
    ranges = [f.ranges() for f in (placed, *own)]
    loose = disjunction(*(part for r in ranges for part in (r.hidden, r.unbounded)))
    unbounded = FALSE if loose is FALSE else TRUE
    low = FALSE
    if call.name == "scatter" and unbounded is TRUE and "reduce" not in call.node.kwargs and len(call.node.args) < 5:
        low = TRUE if all(r.at_most_ordinary is TRUE for r in (ranges[0], *ranges[2:])) else FALSE
    return OpenFact(tuple(common.axes[label] for label in result), call.dtype, same, unbounded=unbounded, low=low)


def _matching(fact: OpenFact, labels: Sequence[object], target: OpenFact) -> OpenFact:
    """The fact with the axes of the target for dimensions on which it does not depend."""
    for d, label in enumerate(labels):
        if isinstance(label, int) and fact.dims[d] and not fact.uses(d):
            fact = with_axes(fact, d, target.dims[label])
    return fact
