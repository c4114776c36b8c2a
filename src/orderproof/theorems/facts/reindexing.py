"""Facts about tensors whose elements are those of another tensor at other indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orderproof.logic.terms import Term, as_term
from orderproof.theorems.facts.frame import converted
from orderproof.theorems.facts.open_fact import Axes, NotCovered, OpenFact, dims_of, index, size_of


@dataclass(frozen=True)
class From:
    """Where a dimension of a result comes from: its axes, and a dimension of the operand if it is an old one."""

    axes: Axes
    source: int | None = None


def rearranged(fact: OpenFact, plan: Sequence[From]) -> OpenFact:
    """The fact about a tensor whose dimensions are dimensions of the operand, in another order, or new ones."""
    places: dict[int, int] = {}
    first = 0
    for one in plan:
        if one.source is not None:
            places[one.source] = first
        first += len(one.axes)
    terms: list[Term] = []
    for dim, axes in enumerate(fact.dims):
        terms += [index(places[dim] + k) if dim in places else as_term(0) for k in range(len(axes))]
    return fact.at([one.axes for one in plan], terms)


def with_dims(
    fact: OpenFact, dims: Sequence[Axes], terms: Mapping[int, Callable[[int], Sequence[Term]]] | None = None
) -> OpenFact:
    """The fact about a tensor with other axes for the dimensions of the operand, which come first in the result.

    Args:
        fact: The fact about the operand.
        dims: The axes of each dimension of the result.
        terms: For dimensions along which an element is another one of the operand, its indices there, from the number
            of the first axis in the result.

    """
    found: list[Term] = []
    place = 0
    for d, axes in enumerate(fact.dims):
        own = (terms or {}).get(d)
        found += [index(place + k) for k in range(len(axes))] if own is None else own(place)
        place += len(dims[d])
    return fact.at(dims, found)


def _with_dim(fact: OpenFact, dim: int, axes: Axes, terms: Callable[[int], Sequence[Term]]) -> OpenFact:
    return with_dims(fact, [*fact.dims[:dim], axes, *fact.dims[dim + 1 :]], {dim: terms})


def with_single_axis(fact: OpenFact, dim: int) -> OpenFact:
    """The fact with one axis for a dimension (none for size one). Raises `NotCovered`."""
    axes = fact.dims[dim]
    if len(axes) < 2:
        return fact
    single = (size_of(axes),)
    try:
        return _with_dim(fact, dim, single, lambda k: converted(axes, single, [index(k)], used=fact.uses(dim)))
    except NotCovered:
        if fact.value is None:
            raise
        return with_single_axis(fact.without_value(), dim)


def reindexed(fact: OpenFact, dim: int, size: Term, term: Term) -> OpenFact:
    """The fact with another size of a dimension, whose index in the operand is `term` of the index in the result."""
    return _with_dim(fact, dim, dims_of([size])[0], lambda _: [term] if fact.dims[dim] else [])


def with_axes(fact: OpenFact, dim: int, axes: Axes) -> OpenFact:
    """The fact with other axes for a dimension on which it does not depend."""
    return _with_dim(fact, dim, axes, lambda _: [as_term(0)] * len(fact.dims[dim]))


def index_along(fact: OpenFact, dim: int, size: Term) -> Term:
    """The index of a result along a dimension that gets this size."""
    return index(fact.first_axis(dim)) if dims_of([size])[0] else as_term(0)
