"""Operators that take parts of a tensor, or shift its elements along a dimension.

Machine-checked (proofs/rules/movement_lemma.v): fact_moved.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from orderproof.logic.terms import (
    FALSE,
    Term,
    as_term,
    at_most,
    conjunction,
    less,
    negation,
    remainder,
)
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, dims_of, index, size_of
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.facts.reindexing import index_along, reindexed, with_single_axis
from orderproof.theorems.walks.open_operation import Application, open_rule
from orderproof.theorems.walks.operation import Operation, number


@open_rule("select")
def select(call: Application) -> OpenFact:
    """One index of a dimension."""
    fact, dim = call.operand, call.dim(1)
    place = number(call.argument(2, "index"))
    if place is None:
        raise NotCovered("an index is not known")
    return selected(call, with_single_axis(fact, dim), dim, place)


def selected(call: Application, fact: OpenFact, dim: int, place: Term) -> OpenFact:
    """The fact about one index of a dimension; a negative one counts from the end.

    Raises `NotCovered` if it may leave the dimension.
    """
    size = size_of(fact.dims[dim])
    if (place.constant < 0) if place.is_constant else call.context.proves(less(place, 0), ()):
        place = place + size
    if not call.context.proves(conjunction(at_most(0, place), less(place, size)), ()):
        raise NotCovered("an index may leave its tensor")
    found = reindexed(fact, dim, as_term(1), place)
    return replace(found, dims=(*found.dims[:dim], *found.dims[dim + 1 :]))


@open_rule("slice", "narrow")
def slice_(call: Application) -> OpenFact:
    """A range of a dimension."""
    dim = call.dim(1)
    fact = with_single_axis(call.operand, dim)
    if call.name == "narrow":
        start, step = call.argument(2, "start"), 1
    else:
        start, step = call.argument(2, "start"), call.argument(4, "step", 1)
    return sliced(call, fact, dim, start, call.shape[dim], step)


def sliced(call: Application, fact: OpenFact, dim: int, start: Any, size: Term, step: int = 1) -> OpenFact:
    """The fact about `size` elements of a dimension from `start` on. Raises `NotCovered` if they may leave it."""
    extent = size_of(fact.dims[dim])
    first = as_term(0) if start is None else number(start)
    if first is None:
        raise NotCovered("the start of a slice is not known")
    if size is extent and step == 1:
        return fact
    if first.is_constant and first.constant < 0:
        first = first + extent
    if not fact.uses(dim):
        return reindexed(fact, dim, size, as_term(0))
    at = index_along(fact, dim, size)
    inside = conjunction(at_most(0, first), at_most(first + (size - 1) * step, extent - 1))
    if not call.context.proves(inside, ()):
        raise NotCovered("a slice may leave its tensor")
    return reindexed(fact, dim, size, first + at * step)


@open_rule("split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_split", "unsafe_chunk")
def split(call: Application) -> tuple[OpenFact, ...]:
    """The parts of a dimension."""
    unbind = call.name == "unbind"
    dim = call.dim(1 if unbind else 2)
    fact = with_single_axis(call.operand, dim)
    require_adjoining_parts(call)
    if unbind:
        return tuple(selected(call, fact, dim, as_term(k)) for k in range(len(call.shapes)))
    parts, start = [], as_term(0)
    for shape in call.shapes:
        parts.append(sliced(call, fact, dim, start, shape[dim]))
        start = start + shape[dim]
    return tuple(parts)


def require_adjoining_parts(call: Operation[Any]) -> None:
    """Raise `NotCovered` if the parts of `tensor_split` may overlap, or leave elements out."""
    ends = call.argument(1, "indices") if call.name == "tensor_split" else None
    if isinstance(ends, list | tuple) and not (
        all(type(end) is int for end in ends) and all(a <= b for a, b in pairwise([0, *ends]))
    ):
        raise NotCovered("parts of a tensor may overlap")


@open_rule("flip")
def flip(call: Application) -> OpenFact:
    """Dimensions in reverse."""
    fact = call.operand
    for one in call.argument(1, "dims"):
        dim = int(one) % len(fact.dims)
        fact = with_single_axis(fact, dim)
        size = size_of(fact.dims[dim])
        fact = reindexed(fact, dim, size, size - 1 - index_along(fact, dim, size))
    return fact


@open_rule("diagonal")
def diagonal(call: Application) -> OpenFact:
    """The diagonal of two dimensions, as the last dimension."""
    fact = call.operand
    rank = len(fact.dims)
    offset, first, second = (
        int(call.argument(k, n, d)) for k, n, d in ((1, "offset", 0), (2, "dim1", 0), (3, "dim2", 1))
    )
    first, second = first % rank, second % rank
    fact = with_single_axis(with_single_axis(fact, first), second)
    kept = [d for d in range(rank) if d not in (first, second)]
    dims = [*(fact.dims[d] for d in kept), *dims_of(call.shape[-1:])]
    places, place = {}, 0
    for d in kept:
        places[d], place = place, place + len(fact.dims[d])
    at = index(place) if dims[-1] else as_term(0)
    terms: list[Term] = []
    for d, axes in enumerate(fact.dims):
        if d in places:
            terms += [index(places[d] + k) for k in range(len(axes))]
        elif axes:
            terms.append(at + max(0, -offset if d == first else offset))
    return fact.at(dims, terms)


@open_rule("roll")
def roll(call: Application) -> OpenFact:
    """Elements shifted around a dimension."""
    shifts, dims = call.argument(1, "shifts"), call.argument(2, "dims", [])
    shifts, dims = ([x] if isinstance(x, int) else list(x) for x in (shifts, dims))
    if not dims:
        raise NotCovered("a roll over all dimensions")
    fact = call.operand
    for shift, one in zip(shifts, dims, strict=True):
        dim = int(one) % len(fact.dims)
        fact = with_single_axis(fact, dim)
        size = size_of(fact.dims[dim])
        if not isinstance(shift, int):
            raise NotCovered("a shift is not known")
        at = index_along(fact, dim, size)
        if size.is_constant:
            fact = reindexed(fact, dim, size, remainder(at - shift, size.constant))
            continue
        wrapped = less(at, shift) if shift >= 0 else at_most(size + shift, at)
        if not call.context.proves(at_most(abs(shift), size), ()):
            fact = _of_any_index(call, fact, dim)
            continue
        around = reindexed(fact, dim, size, at - shift + (size if shift >= 0 else -size))
        fact = piecewise([(wrapped, around), (negation(wrapped), reindexed(fact, dim, size, at - shift))], fact.dtype)
    return fact


def _of_any_index(call: Application, fact: OpenFact, dim: int) -> OpenFact:
    """The fact about a tensor whose elements come from any index of a dimension of the operand."""
    axis, sizes = fact.first_axis(dim), (*fact.sizes, *fact.dims[dim])
    bound = len(fact.sizes)
    other = fact.at(fact.dims, [index(bound) if k == axis else index(k) for k in range(bound)])
    ranges = other.ranges()
    loose = ranges.hidden | ranges.unbounded
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, sizes, bound)
    return OpenFact(fact.dims, fact.dtype, call.context.for_all(other.same, sizes, bound), unbounded=unbounded)


@open_rule("unfold")
def unfold(call: Application) -> OpenFact:
    """Windows of a dimension, as a new last dimension."""
    dim, width, step = call.dim(1, "dimension"), call.argument(2, "size"), call.argument(3, "step")
    fact = with_single_axis(call.operand, dim)
    if not isinstance(step, int) or not isinstance(width, int):
        raise NotCovered("windows of an unknown width")
    dims = [*fact.dims[:dim], *dims_of([call.shape[dim]]), *fact.dims[dim + 1 :], *dims_of([as_term(width)])]
    terms, place = [], 0
    last = index(sum(len(axes) for axes in dims) - 1) if dims[-1] else as_term(0)
    for d, axes in enumerate(fact.dims):
        if d == dim:
            terms += [(index(place) if dims[d] else as_term(0)) * step + last] if axes else []
        else:
            terms += [index(place + k) for k in range(len(axes))]
        place += len(dims[d])
    return fact.at(dims, terms)
