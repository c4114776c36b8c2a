"""Sequences: lists of tensors, whose number is known while a graph runs. An optional value is the value itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.operators.movement import parts_of
from orderproof.models.onnx_file.values import TensorList, Value, are_numbers, as_tensor, integers, numbers


@operator("SequenceConstruct", "SequenceEmpty")
def construct(call: Operation) -> list[Any]:
    """A sequence of the inputs."""
    return [TensorList(x for x in call.inputs if x is not None)]


@operator("SequenceLength")
def length(call: Operation) -> Value:
    """The number of tensors."""
    return numbers(len(_entries(call)))


@operator("SequenceAt")
def entry_at(call: Operation) -> Value:
    """The tensor at a place, counted from the end if it is negative."""
    found = _entries(call)
    chosen: Value = found[_place(call, 1, len(found), len(found) - 1)]
    return chosen


@operator("SequenceInsert", "SequenceErase")
def changed(call: Operation) -> list[Any]:
    """A sequence with one tensor more before a place, or without that at a place; by default at the end."""
    found = list(_entries(call))
    if call.name == "SequenceInsert":
        found.insert(_place(call, 2, len(found), len(found)), call.value(1))
    else:
        found.pop(_place(call, 1, len(found), len(found) - 1))
    return [TensorList(found)]


@operator("SplitToSequence")
def split_to_sequence(call: Operation) -> list[Any]:
    """Parts along an axis: of one entry each, of a size, or of several sizes."""
    x, axis, sizes = call.value(0), call.attribute("axis", 0), call.optional(1)
    if sizes is None:
        found = parts_of(x, [1] * int(x.shape[axis]), axis)
        if not call.attribute("keepdims", 1):
            found = [part.squeeze(axis) for part in found]
        return [TensorList(found)]
    if sizes.ndim:
        return [TensorList(parts_of(x, integers(sizes), axis))]
    (size,), total = integers(sizes), int(x.shape[axis])
    whole = [size] * (total // size)
    return [TensorList(parts_of(x, [*whole, total % size] if total % size else whole, axis))]


@operator("ConcatFromSequence")
def concat_from_sequence(call: Operation) -> Value:
    """All tensors one after the other, or along an axis of their own."""
    found, axis = _entries(call), call.attribute("axis", 0)
    if are_numbers(*found):
        return np.stack(found, axis) if call.attribute("new_axis", 0) else np.concatenate(found, axis)
    join = torch.stack if call.attribute("new_axis", 0) else torch.cat
    joined: Tensor = join([as_tensor(x) for x in found], axis)
    return joined


@operator("SequenceMap")
def sequence_map(call: Operation) -> list[Any]:
    """A graph for each tensor, and for those at its place in other sequences."""
    rows = []
    for place in range(len(_entries(call))):
        inputs: tuple[Any, ...] = call.inputs
        given = [x[place] if isinstance(x, TensorList) else x for x in inputs]
        rows.append(call.graphs["body"](*given))
    return [TensorList(row[k] for row in rows) for k in range(call.output_count)]


@operator("Optional", "OptionalGetElement")
def optional(call: Operation) -> list[Value]:
    """The value."""
    return [call.value(0)]


@operator("OptionalHasElement")
def has_element(call: Operation) -> Value:
    """True if there is a value."""
    return numbers(call.optional(0) is not None)


def _entries(call: Operation) -> TensorList:
    found: Any = call.value(0)
    if not isinstance(found, TensorList):
        raise call.refuse("a tensor in the place of a sequence")
    return found


def _place(call: Operation, given: int, count: int, default: int) -> int:
    """The place in a sequence of `count` tensors."""
    place = call.optional(given)
    (found,) = [default] if place is None else integers(place)
    least, limit = -count, count + (call.name == "SequenceInsert")
    if not least <= found < limit:
        raise call.refuse(f"place {found} in a sequence of {count}")
    return int(found) + count if found < 0 else int(found)
