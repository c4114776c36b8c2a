"""Operators that repeat a tensor, or each of its elements.

Lemma. The copies are an axis of their own, along which all elements are the same: before the axes of the dimension, or
after them.
  1. An element agrees in both runs where the element that it copies does.
  2. The other axes move as those of the operand do.

Machine-checked (proofs/rules/movement_lemma.v): fact_moved, movement_equivariant.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from orderproof.logic.terms import Term
from orderproof.theorems.facts.moved_fact import Motion, MovedFact, of_axes
from orderproof.theorems.facts.open_fact import Axes, NotCovered, OpenFact, dims_of, index
from orderproof.theorems.facts.reindexing import with_dims
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation, number
from orderproof.theorems.walks.operator_rules import operators

REPEAT = operators("repeat", "tile")
REPEAT_INTERLEAVE = operators("repeat_interleave")


def _copies(call: Operation[Any]) -> list[Axes]:
    """The axis of the copies for each dimension of the result, which is empty for one copy."""
    times = list(call.argument(1, "repeats", call.argument(1, "dims")))
    counts = [number(given) for given in [1] * (len(call.shape) - len(times)) + times]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        raise NotCovered("a tensor is repeated an unknown number of times")
    return list(dims_of(known))


def _copies_of_each(call: Operation[Any]) -> tuple[int, Axes]:
    """The dimension along which each element is repeated, and the axis of its copies."""
    count, dim = number(call.argument(1, "repeats")), call.argument(2, "dim")
    dim = 0 if dim is None and call.rank == 1 else dim
    if count is None or not isinstance(dim, int):
        raise NotCovered("elements are repeated an unknown number of times")
    return dim % call.rank, dims_of([count])[0]


@REPEAT.open
def repeat(call: OpenOperation) -> OpenFact:
    """The tensor several times along each dimension."""
    copies = _copies(call)
    fact = replace(call.operand, dims=((),) * (len(copies) - call.rank) + call.operand.dims)
    groups = [(*a, *b) for a, b in zip(copies, fact.dims, strict=True)]
    after = {d: partial(_indices, own, axes) for d, (own, axes) in enumerate(zip(copies, fact.dims, strict=True))}
    return with_dims(fact, groups, after)


def _indices(before: Axes, axes: Axes, place: int) -> list[Term]:
    """The indices of axes that come after others."""
    return [index(place + len(before) + k) for k in range(len(axes))]


@REPEAT.moved
def moved_repeat(call: MovedOperation) -> MovedFact:
    """The tensor several times along each dimension."""
    copies = _copies(call)
    dims = ((),) * (len(copies) - call.rank) + call.operand.dims
    return MovedFact(tuple((*of_axes(a, Motion.FREE), *b) for a, b in zip(copies, dims, strict=True)))


@REPEAT_INTERLEAVE.open
def repeat_interleave(call: OpenOperation) -> OpenFact:
    """Each element several times."""
    dim, copies = _copies_of_each(call)
    return with_dims(call.operand, [(*axes, *copies) if d == dim else axes for d, axes in enumerate(call.operand.dims)])


@REPEAT_INTERLEAVE.moved
def moved_repeat_interleave(call: MovedOperation) -> MovedFact:
    """Each element several times."""
    dim, copies = _copies_of_each(call)
    return call.operand.with_dim(dim, (*call.operand.dims[dim], *of_axes(copies, Motion.FREE)))
