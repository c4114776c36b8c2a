"""Operators that read or write at indices, and those that sort."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.operators.movement import rows_of
from orderproof.models.onnx_file.values import Value, are_numbers, array_of, as_tensor, integers


@operator("Gather")
def gather(call: Operation) -> Value:
    """The entries of an axis at indices."""
    x, index = call.value(0), call.value(1)
    axis = call.attribute("axis", 0) % x.ndim
    if isinstance(index, np.ndarray) and all(isinstance(i, int) for i in index.flat):
        return rows_of(x, index, axis)
    x, index = as_tensor(x), as_tensor(index)
    if axis == 0 and x.ndim == 2 and x.is_floating_point():
        return F.embedding(index, x)
    found = x.index_select(axis, index.reshape(-1))
    return found.reshape([*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]])


@operator("GatherElements")
def gather_elements(call: Operation) -> Value:
    """One entry of an axis for every element."""
    return torch.gather(call.tensor(0), call.attribute("axis", 0), call.tensor(1))


@operator("GatherND")
def gather_nd(call: Operation) -> Value:
    """Elements at tuples of indices."""
    x, index = call.tensor(0), call.tensor(1)
    if call.attribute("batch_dims", 0):
        raise call.refuse("batch_dims")
    return x[tuple(index.unbind(-1))]


@operator("ReverseSequence")
def reverse_sequence(call: Operation) -> Value:
    """The first entries of each row backward, as many as its length; the others stay."""
    x, lengths, time = call.tensor(0), call.tensor(1), call.attribute("time_axis", 0)
    return reversed_rows(x, lengths, time, call.attribute("batch_axis", 1))


def reversed_rows(x: Tensor, lengths: Tensor, time: int = 0, batch: int = 1) -> Tensor:
    """The first entries of each row backward: [time, row, ...] or [row, time, ...]."""
    place = torch.arange(x.shape[time], dtype=lengths.dtype)
    index = torch.where(place < lengths[:, None], lengths[:, None] - 1 - place, place).long()  # [row, time]
    index = index.T if time < batch else index
    return torch.gather(x, time, index.reshape([*index.shape, *[1] * (x.ndim - 2)]).expand(x.shape))


@operator("TensorScatter")
def tensor_scatter(call: Operation) -> Value:
    """A cache with the tokens of each row written after those that it has, from the start again if it is circular."""
    past, new, first = call.tensor(0), call.tensor(1), call.optional_tensor(2)
    first = torch.zeros(1, 1, dtype=torch.long) if first is None else first.reshape(-1, 1)
    circular = call.attribute("mode", "linear") == "circular"
    return written_rows(past, new, first, call.attribute("axis", -2) % past.ndim, circular=circular)


def written_rows(past: Tensor, new: Tensor, first: Tensor, axis: int, *, circular: bool = False) -> Tensor:
    """A copy of ``past`` [row, ...] with the entries of ``new`` along an axis, from a place in each row [row, 1] on."""
    count, size = new.shape[axis], past.shape[axis]
    if type(count) is int and count == 0:
        return past
    place = torch.arange(size) - first  # [row, entry], among the new entries
    place = torch.remainder(place, size) if circular else place
    place = place.reshape(*(place.shape[d // axis] if d in (0, axis) else 1 for d in range(past.ndim)))
    taken = place.clamp(0, count - 1).expand(*(past.shape[d] for d in range(past.ndim)))
    return torch.where((place >= 0) & (place < count), new.gather(axis, taken), past)


@operator("ScatterElements")
def scatter_elements(call: Operation) -> Value:
    """A copy with one entry of an axis replaced for every element."""
    x, axis, how = call.tensor(0), call.attribute("axis", 0), call.attribute("reduction", "none")
    index, source = call.tensor(1), call.tensor(2)
    if how == "none":
        return x.scatter(axis, index, source)
    return x.scatter_reduce(axis, index, source, {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[how])


@operator("ScatterND")
def scatter_nd(call: Operation) -> Value:
    """A copy with elements replaced at tuples of indices."""
    x, index, source = call.tensor(0), call.tensor(1), call.tensor(2)
    how = call.attribute("reduction", "none")
    if how not in ("none", "add"):
        raise call.refuse(f"reduction {how!r}")
    return x.index_put(tuple(index.unbind(-1)), source, accumulate=how == "add")


@operator("OneHot")
def one_hot(call: Operation) -> Value:
    """One of two values: whether an index is the number of the entry, also counted from the end."""
    index, count, pair = call.tensor(0), int(integers(call.value(1))[0]), call.tensor(2)
    axis = call.attribute("axis", -1) % (index.ndim + 1)
    places = torch.arange(count).reshape([-1 if d == axis else 1 for d in range(index.ndim + 1)])
    index = index.unsqueeze(axis)
    return torch.where((index == places) | (index == places - count), pair[1], pair[0])


@operator("CumSum")
def cumsum(call: Operation) -> Value:
    """Running sums, from the end if `reverse` is set, without the own element if `exclusive` is."""
    x, axis = call.tensor(0), int(integers(call.value(1))[0])
    backward = bool(call.attribute("reverse", 0))
    x = x.flip(axis) if backward else x
    found = x.cumsum(axis, dtype=x.dtype)
    found = found - x if call.attribute("exclusive", 0) else found
    return found.flip(axis) if backward else found


@operator("TopK")
def top_k(call: Operation) -> list[Value]:
    """The largest or smallest entries of an axis, and their indices."""
    count = int(integers(call.value(1))[0])
    largest = bool(call.attribute("largest", 1))
    return list(torch.topk(call.tensor(0), count, call.attribute("axis", -1), largest=largest))


@operator("ArgMax", "ArgMin")
def arg_max(call: Operation) -> Value:
    """The first or the last index of the largest or smallest entry."""
    function = torch.argmax if call.name == "ArgMax" else torch.argmin
    x, axis, keep = call.tensor(0), call.attribute("axis", 0), bool(call.attribute("keepdims", 1))
    if call.attribute("select_last_index", 0):
        last: Tensor = x.shape[axis] - 1 - function(x.flip(axis), axis, keepdim=keep)
        return last
    return function(x, axis, keepdim=keep)


_REDUCTIONS: dict[str, Any] = {
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keepdim=keep),
    "ReduceMean": lambda x, axes, keep: _mean(x, axes, keep=keep),
    "ReduceMax": lambda x, axes, keep: x.amax(axes, keepdim=keep),
    "ReduceMin": lambda x, axes, keep: x.amin(axes, keepdim=keep),
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keepdim=keep),
    "ReduceL2": lambda x, axes, keep: x.square().sum(axes, keepdim=keep).sqrt(),
    "ReduceSumSquare": lambda x, axes, keep: x.square().sum(axes, keepdim=keep),
    "ReduceLogSum": lambda x, axes, keep: x.sum(axes, keepdim=keep).log(),
    "ReduceLogSumExp": lambda x, axes, keep: x.logsumexp(axes, keepdim=keep),
}


@operator(*_REDUCTIONS, "ReduceProd")
def reduction(call: Operation) -> Value:
    """A sum, mean, maximum, minimum, product or norm over axes."""
    x, axes = call.value(0), call.listed("axes", 1)
    keep = bool(call.attribute("keepdims", 1))
    if not axes and call.attribute("noop_with_empty_axes", 0):
        x, axes, keep = as_tensor(x).unsqueeze(0), [0], False  # ONNX Runtime computes the function of each element
    axes = [int(d) % x.ndim for d in axes or range(x.ndim)]
    if are_numbers(x) and call.name in ("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin"):
        functions: dict[str, Any] = {
            "ReduceProd": np.prod,
            "ReduceSum": np.sum,
            "ReduceMax": np.max,
            "ReduceMin": np.min,
        }
        return array_of(functions[call.name](x, axis=tuple(axes), keepdims=keep))
    if call.name != "ReduceProd":
        own = as_tensor(x)
        if call.name in ("ReduceLogSum", "ReduceLogSumExp") and not own.is_floating_point():
            raise call.refuse("integers")
        found: Tensor = _REDUCTIONS[call.name](own, axes, keep)
        return found.to(own.dtype)
    for d in sorted(axes, reverse=True):
        x = as_tensor(x).prod(d, keepdim=keep, dtype=as_tensor(x).dtype)
    return x


def _mean(x: Tensor, axes: list[int], *, keep: bool) -> Tensor:
    """The mean over axes; that of integers is cut to an integer."""
    count = math.prod(x.shape[d] for d in axes)
    if type(count) is int and count == 0:
        raise IndexError("the mean of no numbers")  # NaN in torch, 0 in ONNX Runtime
    if x.is_floating_point():
        return x.mean(axes, keepdim=keep)
    return torch.div(x.sum(axes, keepdim=keep), count, rounding_mode="trunc")
