"""Operators that move, cut and join elements, and those about shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.operators.elementwise import DTYPES
from orderproof.models.onnx_file.values import Numbers, Value, are_numbers, array_of, as_tensor, integers, numbers

NO_END = (2**31 - 1, 2**63 - 1)
MAX_AXES = 8


@operator("Shape", "Size")
def shape(call: Operation) -> Value:
    """The sizes of a tensor, or their product."""
    sizes = list(call.value(0).shape)
    if call.name == "Size":
        return numbers(int(np.prod(sizes)))
    end = call.attribute("end")
    return numbers(sizes[call.attribute("start", 0) : len(sizes) if end is None else end])


@operator("Reshape")
def reshape(call: Operation) -> Value:
    """Another shape; 0 keeps a size, and -1 is what remains."""
    x, sizes = call.value(0), call.listed("shape", 1) or []
    keeps = not call.attribute("allowzero", 0)
    sizes = [x.shape[d] if keeps and type(n) is int and n == 0 else n for d, n in enumerate(sizes)]
    return x.reshape(sizes)


@operator("Flatten")
def flatten(call: Operation) -> Value:
    """Two dimensions."""
    x, axis = call.tensor(0), call.attribute("axis", 1)
    axis = axis % x.ndim if axis < 0 else axis
    before = 1
    for size in x.shape[:axis]:
        before *= size
    if is_empty(x):
        return x.reshape(before, math.prod(x.shape[axis:]))
    return x.reshape(before, -1)


def is_empty(x: Tensor) -> bool:
    """True for a tensor without entries; no open size is asked."""
    return any(type(n) is int and n == 0 for n in x.shape)


@operator("Transpose")
def transpose(call: Operation) -> Value:
    """Other order of dimensions."""
    x = call.tensor(0)
    return x.permute(call.attribute("perm", list(range(x.ndim))[::-1]))


@operator("Squeeze")
def squeeze(call: Operation) -> Value:
    """Without dimensions of size one."""
    x, axes = call.value(0), call.listed("axes", 1)
    axes = [d for d, n in enumerate(x.shape) if n == 1] if axes is None else [int(d) % x.ndim for d in axes]
    if isinstance(x, np.ndarray):
        return x.squeeze(tuple(axes))
    for d in sorted(axes, reverse=True):
        x = x.squeeze(d)
    return x


@operator("Unsqueeze")
def unsqueeze(call: Operation) -> Value:
    """With dimensions of size one."""
    x, axes = call.value(0), call.listed("axes", 1) or []
    for d in sorted(int(d) % (x.ndim + len(axes)) for d in axes):
        x = np.expand_dims(x, d) if isinstance(x, np.ndarray) else x.unsqueeze(d)
    return x


@operator("Concat")
def concat(call: Operation) -> Value:
    """Several tensors one after the other."""
    values, axis = [x for x in call.inputs if x is not None], call.attribute("axis", 0)
    if are_numbers(*values):
        return np.concatenate(values, axis)
    return torch.cat([as_tensor(x) for x in values], axis)


@operator("Split")
def split(call: Operation) -> list[Value]:
    """Parts along an axis, of sizes that are given or equal."""
    x, axis = call.value(0), call.attribute("axis", 0)
    size, sizes = x.shape[axis], call.listed("split", 1)
    if sizes is None:
        count = call.attribute("num_outputs", call.output_count)
        part = -(-size // count)
        sizes = [part] * (count - 1) + [size - part * (count - 1)]
    return parts_of(x, sizes, axis)


def parts_of(x: Value, sizes: Sequence[Any], axis: int) -> list[Value]:
    """Parts of some sizes along an axis."""
    if isinstance(x, np.ndarray):
        return list(np.split(x, np.cumsum(sizes)[:-1].tolist(), axis)) if sizes else []
    return list(torch.split(x, list(sizes), axis))


@operator("Slice")
def slice_(call: Operation) -> Value:
    """Parts of some axes, backward if a step is negative."""
    x = call.value(0)
    starts, ends = call.listed("starts", 1) or [], call.listed("ends", 2) or []
    axes, steps = call.listed("axes", 3) or range(len(starts)), call.listed("steps", 4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        d = int(axis) % x.ndim
        if step > 0:
            x = x[(slice(None),) * d + (slice(start, end, step),)]
            continue
        chosen = _backward(start, end, step, x.shape[d])
        if isinstance(x, np.ndarray):
            x = np.take(x, list(chosen), d)
        else:
            x = x.index_select(d, torch.tensor(list(chosen), dtype=torch.int64))
    return x


def _backward(start: int, end: int, step: int, size: int) -> range:
    """The places from a start down to an end, which is left out; limits outside are those of the axis.

    A start before the axis is its first place, unlike in Python. ONNX Runtime takes the largest integers as no end.
    """
    first = max(min(start + size if start < 0 else start, size - 1), 0) if size else -1
    last = -1 if end in NO_END else max(min(end + size if end < 0 else end, size - 1), -1)
    return range(first, last, step)


@operator("Expand")
def expand(call: Operation) -> Value:
    """A shape by broadcasting in both directions."""
    x, sizes = call.value(0), integers(call.value(1))
    if isinstance(x, np.ndarray) and len(sizes) <= 1 and all(type(n) is int for n in sizes):
        return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(sizes)))
    x = as_tensor(x)
    own = [1] * (len(sizes) - x.ndim) + list(x.shape)
    sizes = [1] * (len(own) - len(sizes)) + sizes
    return x.expand([b if type(a) is int and a == 1 else a for a, b in zip(own, sizes, strict=True)])


@operator("Tile")
def tile(call: Operation) -> Value:
    """Repeated along each axis."""
    return call.tensor(0).repeat(integers(call.value(1)))


@operator("Trilu")
def trilu(call: Operation) -> Value:
    """A triangle of the last two dimensions."""
    diagonal = 0 if call.optional(1) is None else int(integers(call.optional(1))[0])
    return (torch.triu if call.attribute("upper", 1) else torch.tril)(call.tensor(0), diagonal)


@operator("Range")
def range_(call: Operation) -> Value:
    """Numbers from a start to an end."""
    start, end, step = (call.value(place) for place in range(3))
    values: list[Any] = [x.item() if are_numbers(x) else x.reshape(()).tolist() for x in (start, end, step)]
    kinds = {x.dtype for x in (start, end, step) if isinstance(x, Tensor)}
    if all(type(x) in (int, float) for x in values) and (values[1] - values[0]) * values[2] < 0:
        values[1] = values[0]  # no number
    return torch.arange(*values, dtype=kinds.pop() if kinds else None)


@operator("ConstantOfShape")
def constant_of_shape(call: Operation) -> Value:
    """One number everywhere."""
    sizes, value = integers(call.value(0)), call.attribute("value")
    number = 0.0 if value is None else value.reshape(()).item()
    if len(sizes) == 1 and isinstance(number, int) and type(sizes[0]) is int and sizes[0] <= MAX_AXES:
        return numbers([number] * sizes[0])  # as long as a shape
    dtype = call.real if value is None or value.dtype is torch.float32 else value.dtype
    return torch.full(sizes, number, dtype=dtype)


@operator("EyeLike")
def eye_like(call: Operation) -> Value:
    """Ones on a diagonal."""
    kind = call.attribute("dtype", 0)
    dtype = DTYPES.get(onnx.TensorProto.DataType.Name(kind)) if kind else call.tensor(0).dtype
    if dtype is None:
        raise call.refuse("this type of numbers")
    return torch.ones_like(call.tensor(0), dtype=dtype).tril(k := call.attribute("k", 0)).triu(k)


@operator("DepthToSpace", "SpaceToDepth")
def depth_to_space(call: Operation) -> Value:
    """Channels as places, or places as channels."""
    x, block, turned = call.tensor(0), call.attribute("blocksize"), call.attribute("mode", "DCR") == "CRD"
    rows, channels, high, wide = x.shape
    if call.name == "SpaceToDepth":
        parts = x.reshape(rows, channels, high // block, block, wide // block, block).permute(0, 3, 5, 1, 2, 4)
        return parts.reshape(rows, channels * block * block, high // block, wide // block)
    own = channels // (block * block)
    sizes, order = ((own, block, block), (0, 1, 4, 2, 5, 3)) if turned else ((block, block, own), (0, 3, 4, 1, 5, 2))
    return x.reshape(rows, *sizes, high, wide).permute(order).reshape(rows, own, high * block, wide * block)


def rows_of(x: Value, index: Numbers, axis: int) -> Value:
    """The entries of an axis at numbers that are known."""
    if isinstance(x, np.ndarray):
        return array_of(np.take(x, index.astype(np.int64), axis))
    if index.ndim == 0:
        return x.select(axis, index.item())
    flat: list[Any] = [int(i) % x.shape[axis] for i in index.flat]
    found = x.index_select(axis, torch.tensor(flat, dtype=None if flat else torch.int64))
    return found.reshape([*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]])
