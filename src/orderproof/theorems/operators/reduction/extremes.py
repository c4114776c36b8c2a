"""The largest element of a row, the one of a rank, all of them by size; and where they are.

Lemma. Each number is computed from all elements along the dimension, whatever their order.
  1. It agrees in both runs where all of them do. Of the largest, entries as negative as a mask do not count next to a
     visible one. Of known integers, what `extreme_places` says is known; of sorted rows, what `sorted_places` says.
  2. Moved along another dimension, it moves. Moved along the dimension itself, the numbers stay as they are, and of
     their indices nothing is claimed.

Machine-checked (proofs/symbolic/steps.v): reduction_step.
Machine-checked (proofs/symbolic/moved_axes.v): whole_row_function.
Machine-checked (proofs/rules/maximum_lemma.v): maximum_of_visible.
Machine-checked (proofs/rules/scan_lemma.v): sorted_values_invariant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import FALSE
from orderproof.theorems.facts.moved_fact import NOTHING, Dim, Motion, MovedFact, still, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.operators.pointwise.pointwise import moved_pointwise, pointwise
from orderproof.theorems.operators.reduction.reduction import from_whole_rows, largest, may_hide, reduction, without
from orderproof.theorems.operators.reduction.scan import by_index
from orderproof.theorems.walks.extreme_places import extreme_facts, sorted_facts
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation
from orderproof.theorems.walks.operator_rules import operators

EXTREME = operators("max", "min", "argmax", "argmin")
MIDDLE = operators("median", "nanmedian", "mode")


@EXTREME.open
@MIDDLE.open
def extreme(call: OpenOperation) -> OpenFact | tuple[OpenFact, ...]:
    """The largest or smallest element, and where it is; of two tensors, the larger or smaller element."""
    second = call.argument(1, "dim")
    if isinstance(second, Node) or "other" in call.node.kwargs:
        return pointwise(call)
    if (known := extreme_facts(call)) is not None:
        return known if len(call.shapes) == 2 else known[1]
    dims = call.dims(second)
    keep = len(call.shapes[0]) == len(call.operand.dims) and bool(call.operand.dims)
    if call.name in ("max", "argmax") and len(dims) == 1 and may_hide(call.operand):
        found = largest(call, dims[0], keep=keep)
        return found if call.name == "max" else found[1]
    fact = reduction(call, call.operand, dims, keep=keep, zeros_vanish=False)
    if call.name in ("argmax", "argmin"):
        return replace(fact, unbounded=FALSE)
    return (fact, OpenFact(fact.dims, torch.int64, fact.same)) if len(call.shapes) == 2 else fact


@EXTREME.moved
def moved_extreme(call: MovedOperation) -> MovedFacts:
    """The largest element, and its index if it is asked for."""
    second = call.argument(1, "dim")
    if isinstance(second, Node) or "other" in call.node.kwargs:
        return moved_pointwise(call)
    arg, fact = call.name.startswith("arg"), call.operand
    if second is None:
        for dim in fact.dims if arg else ():
            still(dim, "the index of a token")
        return uniform(call.shape, Motion.STILL)
    place = int(second) % max(call.rank, 1)
    dim = fact.dims[place] if fact.dims else ()
    if arg:
        still(dim, "the index of a token")
    found = without(call, fact, [place]) if fact.dims else fact
    return (found, _unknown_where_moved(found, dim)) if len(call.shapes) > 1 else found


@MIDDLE.moved
def moved_middle(call: MovedOperation) -> MovedFacts:
    """The element in the middle by size, and where it is. Of two that are as frequent, `mode` says nothing."""
    if call.name == "mode":
        raise NotCovered("the most frequent element")
    return moved_extreme(call)


def _unknown_where_moved(indices: MovedFact, dim: Dim) -> MovedFact:
    """The fact about indices along a dimension; nothing is claimed of the indices of tokens."""
    moves = any(axis.motion is Motion.MOVED for axis in dim)
    return replace(indices, written=NOTHING) if moves else indices


KTHVALUE = operators("kthvalue")


@KTHVALUE.open
def order_statistic(call: OpenOperation) -> tuple[OpenFact, OpenFact]:
    """The element of each row that has a rank, and where it is."""
    keep = len(call.shapes[0]) == len(call.operand.dims) and bool(call.operand.dims)
    fact = reduction(call, call.operand, call.dims(call.argument(2, "dim", -1)), keep=keep, zeros_vanish=False)
    return fact, OpenFact(fact.dims, torch.int64, fact.same)


ORDER = operators("sort", "topk", "argsort")


def _ordered_dim(call: Operation[Any]) -> int:
    return call.dim(1 if call.name in ("sort", "argsort") else 2, default=-1)


@ORDER.open
def order(call: OpenOperation) -> OpenFact | tuple[OpenFact, ...]:
    """Elements along a dimension by size: each result is computed from all of them."""
    if (known := sorted_facts(call)) is not None:
        return known[1] if call.name == "argsort" else known
    return from_whole_rows(call, call.operand, [_ordered_dim(call)])


@ORDER.moved
@KTHVALUE.moved
def moved_order(call: MovedOperation) -> MovedFacts:
    """Elements in order, which are the same whatever the order of the operand, and their indices."""
    place, fact = _ordered_dim(call), call.operand
    if call.name == "argsort" or not fact.dims:
        return by_index(call, place)
    if call.name == "topk" and not call.argument(4, "sorted", True):
        still(fact.dims[place], "the largest elements come in an order that depends on that of all")
    in_order = fact.with_dim(place, tuple(replace(axis, motion=Motion.STILL, before=0) for axis in fact.dims[place]))
    return by_index(call, place, in_order, _unknown_where_moved(in_order, fact.dims[place]))
