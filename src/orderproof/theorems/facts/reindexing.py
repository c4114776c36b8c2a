"""Facts about tensors whose elements are those of another tensor at other indices."""

from __future__ import annotations

from collections.abc import Sequence
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


def with_single_axis(fact: OpenFact, dim: int) -> OpenFact:
    """The fact with one axis for a dimension (none for size one). Raises `NotCovered`."""
    axes = fact.dims[dim]
    if len(axes) < 2:
        return fact
    dims = [*fact.dims[:dim], (size_of(axes),), *fact.dims[dim + 1 :]]
    terms: list[Term] = []
    place = 0
    try:
        for d, own in enumerate(fact.dims):
            new = [index(place + k) for k in range(len(dims[d]))]
            terms += converted(own, dims[d], new, used=fact.uses(d)) if d == dim else new
            place += len(dims[d])
    except NotCovered:
        if fact.value is None:
            raise
        return with_single_axis(fact.without_value(), dim)
    return fact.at(dims, terms)


def reindexed(fact: OpenFact, dim: int, size: Term, term: Term) -> OpenFact:
    """The fact with another size of a dimension, whose index in the operand is `term` of the index in the result."""
    dims = [*fact.dims[:dim], *dims_of([size]), *fact.dims[dim + 1 :]]
    terms, place = [], 0
    for d, axes in enumerate(fact.dims):
        terms += [term] if d == dim and axes else [] if d == dim else [index(place + k) for k in range(len(axes))]
        place += len(dims[d])
    return fact.at(dims, terms)


def with_axes(fact: OpenFact, dim: int, axes: Axes) -> OpenFact:
    """The fact with other axes for a dimension on which it does not depend."""
    dims = [axes if d == dim else own for d, own in enumerate(fact.dims)]
    terms: list[Term] = []
    place = 0
    for d, own in enumerate(fact.dims):
        terms += [as_term(0) if d == dim else index(place + k) for k in range(len(own))]
        place += len(dims[d])
    return fact.at(dims, terms)


def index_along(fact: OpenFact, dim: int, size: Term) -> Term:
    """The index of a result along a dimension that gets this size."""
    return index(fact.first_axis(dim)) if dims_of([size])[0] else as_term(0)
