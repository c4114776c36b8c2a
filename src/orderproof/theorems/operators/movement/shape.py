"""The same elements in the same order in another shape; pairs of real numbers as complex ones, and back.

Lemma. Let the axes of both shapes be taken apart into common ones.
  1. An element agrees in both runs where the element of the operand with the same digits does. Where two axes have no
     common ones and their sizes are almost the same, it is the element at the same place in memory. Where
     only the first axis is kept, an element is one of its row, and agrees where the whole row does.
  2. The axes of the result move as those of the operand. An axis of tokens that is taken apart into groups by its index
     has no motion: nothing follows.

Machine-checked (proofs/rules/movement_lemma.v): fact_moved, movement_equivariant.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from orderproof.logic.terms import FALSE, Term, as_term
from orderproof.theorems.facts.frame import EqualSizes, converted, refined
from orderproof.theorems.facts.moved_fact import Axis, Dim, Motion, MovedFact, sizes, split, still
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, index, size_of
from orderproof.theorems.facts.reindexing import with_single_axis
from orderproof.theorems.operators.movement.parts import TAKEN_BY_INDEX, selected
from orderproof.theorems.operators.movement.skewed import skewed
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation
from orderproof.theorems.walks.operator_rules import operators

VIEW = operators(
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "ravel", "_reshape_alias"
)
OTHER_SHAPE = "the axes of two shapes do not fit each other"
ONE = as_term(1)


def _require_same_bits(call: Operation[Any]) -> None:
    if isinstance(call.argument(1, "size"), torch.dtype):
        raise NotCovered("the bits of a tensor are read as another dtype")


def _groups(sizes: Sequence[Term], shape: Sequence[Term], equal: EqualSizes) -> list[slice]:
    """The axes of each dimension of a shape, among axes in order. Raises `NotCovered`."""
    found, end = [], 0
    for size in shape:
        start = end
        while (start == end and size is not ONE) or not equal(size_of(tuple(sizes[start:end])), size):
            if end == len(sizes):
                raise NotCovered(OTHER_SHAPE)
            end += 1
        found.append(slice(start, end))
    if end < len(sizes):
        raise NotCovered(OTHER_SHAPE)
    return found


@VIEW.open
def view(call: OpenOperation) -> OpenFact:
    """The same elements in the same order in another shape."""
    _require_same_bits(call)
    try:
        return reshaped(call, call.operand, call.shape)
    except NotCovered:
        within = _within_rows(call)
        if within is None:
            raise
        return within


def _within_rows(call: OpenOperation) -> OpenFact | None:
    """Elements of each row somewhere in that row: what holds of all elements of it. None if nothing does."""
    fact, shape = call.operand, call.shape
    if not (fact.dims and shape) or len(fact.dims[0]) != 1 or not call.context.equal_sizes(fact.dims[0][0], shape[0]):
        return None
    same, finite = (call.context.for_all(f, fact.sizes, 1) for f in (fact.same, fact.ranges().finite))
    dims = (fact.dims[0], *((() if size is ONE else (size,)) for size in shape[1:]))
    return None if same is FALSE else OpenFact(dims, call.dtype, same, unbounded=~finite)


def reshaped(call: OpenOperation, fact: OpenFact, shape: Sequence[Term]) -> OpenFact:
    """The fact about a tensor with the same elements in the same order in another shape. Raises `NotCovered`."""
    equal_sizes = call.context.equal_sizes
    new_sizes = tuple(size for size in shape if size is not ONE)
    try:
        common = refined(fact.sizes, new_sizes, equal_sizes)
    except NotCovered:
        places = skewed(fact.sizes, new_sizes, call.context)
        if places is None:
            raise
        return fact.at([() if size is ONE else (size,) for size in shape], places)
    groups = [common[group] for group in _groups(common, shape, equal_sizes)]
    used = frozenset().union(*(part.variables for part in fact.parts))
    if not any(index(k).variables & used for k in range(len(fact.sizes))):
        return fact.at(groups, [as_term(0)] * len(fact.sizes))
    try:
        new = [index(k) for k in range(len(common))]
        return fact.at(groups, converted(fact.sizes, common, new, used=True, equal=equal_sizes))
    except NotCovered:
        if fact.value is None:
            raise
    return reshaped(call, fact.without_value(), shape)


@VIEW.moved
def moved_view(call: MovedOperation) -> MovedFact:
    """The same elements in the same order in another shape."""
    _require_same_bits(call)
    equal_sizes = call.context.equal_sizes
    whole: Dim = tuple(axis for dim in call.operand.dims for axis in dim)
    common = refined(sizes(whole), tuple(size for size in call.shape if size is not ONE), equal_sizes)
    axes = split(whole, common, equal_sizes)
    return MovedFact(tuple(axes[group] for group in _groups(common, call.shape, equal_sizes)))


COMPLEX_VIEW = operators("view_as_complex", "view_as_real")


@COMPLEX_VIEW.open
def complex_view(call: OpenOperation) -> OpenFact:
    """Pairs of real numbers as complex ones, and back."""
    fact = call.operand
    if call.name == "view_as_real":
        return OpenFact((*fact.dims, (as_term(2),)), call.dtype, fact.same, None, fact.hidden, unbounded=fact.unbounded)
    last = len(fact.dims) - 1
    fact = with_single_axis(fact, last)
    parts = [selected(call, fact, last, as_term(k)) for k in range(2)]
    ranges = [part.ranges() for part in parts]
    return OpenFact(
        parts[0].dims, call.dtype, parts[0].same & parts[1].same,
        unbounded=ranges[0].unbounded | ranges[1].unbounded | ranges[0].hidden | ranges[1].hidden,
    )  # fmt: skip


@COMPLEX_VIEW.moved
def moved_complex_view(call: MovedOperation) -> MovedFact:
    """Pairs of real numbers as complex ones, and back."""
    dims = call.operand.dims
    if call.name == "view_as_real":
        return MovedFact((*dims, (Axis(as_term(2), Motion.STILL),)))
    still(dims[-1], TAKEN_BY_INDEX)
    return MovedFact(dims[:-1])
