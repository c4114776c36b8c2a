"""Operators that write elements to places given by integer indices, and copies.

Which element is written where is not followed: along the dimension of the indices, an element of the result agrees in
both runs where the element that was there agrees, and all indices and written elements along that dimension do.

Machine-checked (proofs/rules/scatter_lemma.v): write_dependence.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, conjunction, disjunction
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.facts.reindexing import with_axes
from orderproof.theorems.walks.open_operation import Application, number_fact, open_rule


@open_rule("copy", "copy_", "fill")
def copy(call: Application) -> OpenFact:
    """The elements of another tensor in this shape."""
    fact, source = call.operand, call.fact(call.node.args[1])
    rank = len(fact.dims)
    own = range(rank - len(source.dims), rank)
    whole = OpenFact(fact.dims, call.dtype)
    common = frame([(whole, range(rank)), (source, own)], range(rank))
    placed = common.place(source, own)
    if source.dtype == call.dtype:
        return placed
    ranges = placed.ranges()
    if not call.dtype.is_floating_point and not call.dtype.is_complex:  # a large number wraps around
        unbounded = ranges.hidden | ranges.unbounded
        return OpenFact(fact.dims, call.dtype, placed.same, zero=ranges.zero, unbounded=unbounded)
    return OpenFact(fact.dims, call.dtype, placed.same, None, ranges.hidden, ranges.zero, ranges.unbounded)


@open_rule("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill")
def scatter(call: Application) -> OpenFact:
    """Elements written along one dimension."""
    fact = call.operand
    dim = int(call.argument(1, "dim")) % max(len(fact.dims), 1)
    others = [call.fact(x) if isinstance(x, Node) else number_fact(x, call.dtype) for x in call.node.args[2:4]]
    others += [
        number_fact(call.node.kwargs[name], call.dtype) for name in ("value", "alpha") if name in call.node.kwargs
    ]
    rank = len(fact.dims)
    labels = [list(range(rank)) if len(f.dims) == rank else [dim] * len(f.dims) for f in others]
    return written(call, fact, [dim], list(zip(others, labels, strict=True)))


@open_rule("index_put", "_unsafe_index_put", "index_put_")
def index_put(call: Application) -> OpenFact:
    """Elements written at indices given for the first dimensions: every element may be written."""
    fact = call.operand
    indices = [x for x in call.argument(1, "indices") if x is not None]
    others = [call.fact(x) for x in [*indices, call.argument(2, "values")]]
    if any(not isinstance(x, Node) for x in indices):
        raise NotCovered("elements are written at unknown places")
    everywhere = [(f, [f"other {k} {d}" for d in range(len(f.dims))]) for k, f in enumerate(others)]
    return written(call, fact, [], everywhere)


def written(
    call: Application, fact: OpenFact, dims: Sequence[int], others: Sequence[tuple[OpenFact, Sequence[object]]]
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
