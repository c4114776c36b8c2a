"""Operators that take parts of a tensor: one index, a range, all parts of a dimension.

Lemma. Each element is the one of the operand at another index of the dimension.
  1. It agrees in both runs where that element does, if the index is inside the operand for every size.
  2. Other dimensions keep their motion. Along the dimension itself all tokens may be taken, or none: which token an
     index chooses depends on their order.

Machine-checked (proofs/rules/movement_lemma.v): fact_moved, movement_equivariant.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from orderproof.logic.terms import Term, as_term, at_most, conjunction, less
from orderproof.theorems.facts.moved_fact import Axis, Dim, Motion, MovedFact, size, still, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, size_of
from orderproof.theorems.facts.reindexing import index_along, reindexed, with_single_axis
from orderproof.theorems.statement import TOKENS
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation, number
from orderproof.theorems.walks.operator_rules import operators

TAKEN_BY_INDEX = "tokens are chosen by their index"


SELECT = operators("select")


@SELECT.open
def select(call: OpenOperation) -> OpenFact:
    """One index of a dimension."""
    fact, dim = call.operand, call.dim(1)
    place = number(call.argument(2, "index"))
    if place is None:
        raise NotCovered("an index is not known")
    return selected(call, with_single_axis(fact, dim), dim, place)


def selected(call: OpenOperation, fact: OpenFact, dim: int, place: Term) -> OpenFact:
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


@SELECT.moved
def moved_select(call: MovedOperation) -> MovedFact:
    """One index of a dimension."""
    place, index = call.dim(1), call.argument(2, "index")
    axes = call.operand.dims[place]
    is_moved = len(axes) == 1 and axes[0].motion is Motion.MOVED
    if not is_moved or not isinstance(index, int) or not _is_no_token(axes[0], index):
        still(axes, TAKEN_BY_INDEX)
    return call.operand.with_dim(place)


SLICE = operators("slice", "narrow")


def _range(call: Operation[Any]) -> tuple[int, Any, Any]:
    """The dimension, the start and the step of a range."""
    start, step = call.argument(2, "start"), 1 if call.name == "narrow" else call.argument(4, "step", 1)
    return call.dim(1), 0 if start is None else start, step


@SLICE.open
def slice_(call: OpenOperation) -> OpenFact:
    """A range of a dimension."""
    dim, start, step = _range(call)
    is_whole = step == 1 and size_of(call.operand.dims[dim]) is call.shape[dim]  # as in x[:, None]
    fact = call.operand if is_whole else with_single_axis(call.operand, dim)
    return sliced(call, fact, dim, start, call.shape[dim], step)


def sliced(call: OpenOperation, fact: OpenFact, dim: int, start: Any, size: Term, step: int = 1) -> OpenFact:
    """The fact about `size` elements of a dimension from `start` on. Raises `NotCovered` if they may leave it."""
    extent = size_of(fact.dims[dim])
    first = number(start)
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


@SLICE.moved
def moved_slice(call: MovedOperation) -> MovedFact:
    """A range of a dimension."""
    dim, start, step = _range(call)
    return _moved_part(call, call.operand, dim, start, call.shape[dim], step)


def _moved_part(
    call: MovedOperation, fact: MovedFact, place: int, start: Any, wanted: Term, step: Any = 1
) -> MovedFact:
    """A range of a dimension: all of it, all tokens of it, or some of one in which no axis moves."""
    if step == 1 and call.context.equal_sizes(size(fact.dims[place]), wanted):
        return fact
    if step == 1 and len(fact.dims[place]) == 1 and fact.dims[place][0].motion is Motion.MOVED:
        return fact.with_dim(place, _part_with_tokens(fact.dims[place][0], start, wanted))
    motions = {axis.motion for axis in fact.dims[place]}
    still(fact.dims[place], TAKEN_BY_INDEX)
    motion = Motion.FREE if motions <= {Motion.FREE} else Motion.STILL
    return fact.with_dim(place, *uniform([wanted], motion).dims)


def _is_no_token(axis: Axis, index: int) -> bool:
    """True of an index of an axis that moves, which is that of an element before the tokens or behind them."""
    behind = axis.size - TOKENS - axis.before
    return index < axis.before if index >= 0 else behind.is_constant and -index <= behind.constant


def _part_with_tokens(axis: Axis, start: Any, wanted: Term) -> Dim:
    """A range of an axis that moves, with all tokens or none. Raises `NotCovered`."""
    more = wanted + start - axis.before - TOKENS if isinstance(start, int) and start >= 0 else None
    if more is None or not more.is_constant:
        first = as_term(start) if not isinstance(start, int) or start >= 0 else axis.size + start
        kept, behind = first + wanted, first - TOKENS - axis.before
        is_before = kept.is_constant and kept.constant <= axis.before
        if is_before or (behind.is_constant and behind.constant >= 0):
            return uniform([wanted], Motion.STILL).dims[0]
        raise NotCovered(TAKEN_BY_INDEX)
    if start > axis.before or more.constant < 0:
        raise NotCovered(TAKEN_BY_INDEX)
    return (Axis(wanted, Motion.MOVED, axis.before - start),)


SPLIT = operators("split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_split", "unsafe_chunk")


@SPLIT.open
def split(call: OpenOperation) -> tuple[OpenFact, ...]:
    """The parts of a dimension."""
    dim = call.dim(1 if call.name == "unbind" else 2)
    fact = with_single_axis(call.operand, dim)
    if call.name == "unbind":
        return tuple(selected(call, fact, dim, as_term(k)) for k in range(len(call.shapes)))
    return tuple(sliced(call, fact, dim, start, size) for start, size in _adjoining(call, dim))


@SPLIT.moved
def moved_split(call: MovedOperation) -> MovedFacts:
    """The parts of a dimension."""
    fact = call.operand
    dim = call.dim(1 if call.name == "unbind" else 2)
    if call.name == "unbind":
        still(fact.dims[dim], TAKEN_BY_INDEX)
        return (fact.with_dim(dim),) * len(call.shapes)
    return tuple(
        _moved_part(call, fact, dim, start.constant if start.is_constant else start, size)
        for start, size in _adjoining(call, dim)
    )


def _adjoining(call: Operation[Any], dim: int) -> Iterator[tuple[Term, Term]]:
    """The start and the size of each part. Raises `NotCovered` if they may overlap."""
    ends = call.argument(1, "indices") if call.name == "tensor_split" else None
    if isinstance(ends, list | tuple) and not (
        all(type(end) is int for end in ends) and all(a <= b for a, b in pairwise([0, *ends]))
    ):
        raise NotCovered("parts of a tensor may overlap")
    start = as_term(0)
    for shape in call.shapes:
        yield start, shape[dim]
        start = start + shape[dim]
