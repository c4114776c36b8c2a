"""Primitives that move, cut, join and create elements."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.jax_function.primitive import Primitive, Value, primitive


@primitive("broadcast_in_dim")
def broadcast_in_dim(call: Primitive) -> Value:
    """A shape in which the axes of the input have given places."""
    shape, places = call.shape(), [int(d) for d in call.param("broadcast_dimensions")]
    x = call.inputs[0]
    if not isinstance(x, Tensor):
        return call.full(x, shape, call.input_dtypes[0]) if shape else x
    sizes = [x.shape[places.index(d)] if d in places else 1 for d in range(len(shape))]
    if places and len(sizes) != x.ndim:
        x = with_axes(x, [d for d in range(len(shape)) if d not in places])
    elif not places:
        x = x.reshape([1] * len(shape))
    return x if _same(sizes, shape) else x.expand(shape)


def with_axes(x: Tensor, axes: list[int]) -> Tensor:
    """A tensor with new axes of size one at places in its new shape."""
    for d in sorted(axes):
        x = x.unsqueeze(d)
    return x


def _same(sizes: list[Any], others: list[Any]) -> bool:
    """True if sizes are equal without a question about open ones: another broadcast is harmless."""
    return all(a is b or (type(a) is int and type(b) is int and a == b) for a, b in zip(sizes, others, strict=True))


@primitive("reshape")
def reshape(call: Primitive) -> Value:
    """Another shape."""
    if call.param("dimensions") is not None:
        raise call.refuse("an order of dimensions")
    x = call.inputs[0]
    if not isinstance(x, Tensor):
        return call.full(x, call.shape(), call.input_dtypes[0]) if call.shape() else x
    return x.reshape(call.shape())


@primitive("squeeze")
def squeeze(call: Primitive) -> Value:
    """Without axes of size one."""
    x = call.tensor(0)
    for d in sorted((int(d) for d in call.param("dimensions")), reverse=True):
        x = x.squeeze(d)
    return x


@primitive("expand_dims")
def expand_dims(call: Primitive) -> Value:
    """With axes of size one."""
    return with_axes(call.tensor(0), [int(d) for d in call.param("dimensions")])


@primitive("transpose")
def transpose(call: Primitive) -> Value:
    """Another order of axes."""
    return call.tensor(0).permute([int(d) for d in call.param("permutation")])


@primitive("rev")
def rev(call: Primitive) -> Value:
    """Axes backward."""
    return torch.flip(call.tensor(0), [int(d) for d in call.param("dimensions")])


@primitive("concatenate")
def concatenate(call: Primitive) -> Value:
    """Several tensors one after the other."""
    return torch.cat(call.tensors(), int(call.param("dimension")))


@primitive("split")
def split(call: Primitive) -> list[Value]:
    """Parts along an axis."""
    return list(torch.split(call.tensor(0), list(call.param("sizes")), int(call.param("axis"))))


@primitive("slice")
def slice_(call: Primitive) -> Value:
    """A part of each axis."""
    x = call.tensor(0)
    starts, limits = call.param("start_indices"), call.param("limit_indices")
    strides = call.param("strides") or [1] * x.ndim
    full = call.shape()
    for d, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        if stride == 1 and type(start) is int and start == 0 and _same([x.shape[d]], [full[d]]):
            continue
        x = x[(slice(None),) * d + (slice(start, limit, stride),)]
    return x


@primitive("dynamic_slice")
def dynamic_slice(call: Primitive) -> Value:
    """A part of each axis, from starts that data may give; they are moved so that the part is inside."""
    x, starts, sizes = call.tensor(0), call.inputs[1:], call.param("slice_sizes")
    for d, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if _same([size], [x.shape[d]]):
            continue
        if isinstance(start, Tensor):
            index = clamped(start, x.shape[d] - size) + torch.arange(size, dtype=torch.int64)
            x = x.index_select(d, index)
        else:
            first = max(min(start, x.shape[d] - size), 0)
            x = x[(slice(None),) * d + (slice(first, first + size),)]
    return x


@primitive("dynamic_update_slice")
def dynamic_update_slice(call: Primitive) -> Value:
    """A copy with a part replaced; the part is moved so that it is inside."""
    x, update, starts = call.tensor(0), call.tensor(1), call.inputs[2:]
    if all(_same([a], [b]) for a, b in zip(x.shape, update.shape, strict=True)):
        return update
    if not any(isinstance(start, Tensor) for start in starts):
        found = x.clone()
        firsts = [max(min(s, n - k), 0) for s, n, k in zip(starts, x.shape, update.shape, strict=True)]
        found[tuple(slice(s, s + k) for s, k in zip(firsts, update.shape, strict=True))] = update
        return found
    index = []
    for d, (start, size) in enumerate(zip(starts, update.shape, strict=True)):
        first = torch.as_tensor(start, dtype=torch.int64)
        places = clamped(first, x.shape[d] - size) + torch.arange(size, dtype=torch.int64)
        index.append(places.reshape([-1 if k == d else 1 for k in range(x.ndim)]))
    return x.index_put(tuple(index), update)


def clamped(start: Tensor, most: Any) -> Tensor:
    """Starts as indices between zero and the last one."""
    return torch.clamp(start.to(torch.int64), 0, most)


@primitive("pad")
def pad(call: Primitive) -> Value:
    """Elements before, after and between those of each axis; a negative number cuts."""
    x, value = call.tensor(0), call.inputs[1]
    config = [tuple(entry) for entry in call.param("padding_config")]
    number = 0 if isinstance(value, Tensor) else value
    found = padded(x, config, number)
    if isinstance(value, Tensor):
        inside = padded(torch.ones(x.shape, dtype=torch.bool), config, number=False)
        return torch.where(inside, found, value)
    return found


def padded(x: Tensor, config: list[tuple[Any, Any, Any]], number: Any) -> Tensor:
    """A tensor with a number before, after and between the elements of each axis."""
    for d, (_, _, between) in enumerate(config):
        if between:
            size = x.shape[d]
            x = F.pad(x.unsqueeze(d + 1), [0, 0] * (x.ndim - d - 1) + [0, between], value=number)
            x = x.flatten(d, d + 1).narrow(d, 0, size + (size - 1) * between)
    widths = [n for low, high, _ in reversed(config) for n in (low, high)]
    return F.pad(x, widths, value=number) if any(type(n) is not int or n for n in widths) else x


@primitive("iota")
def iota(call: Primitive) -> Value:
    """Numbers from zero along an axis."""
    shape, d = call.shape(), int(call.param("dimension"))
    found = torch.arange(shape[d], dtype=call.result_dtype)
    if len(shape) == 1:
        return found
    return found.reshape([-1 if k == d else 1 for k in range(len(shape))]).expand(shape)


@primitive("select_and_scatter_add", "select_and_gather_add")
def unsupported(call: Primitive) -> Value:
    """Gradients of pooling."""
    raise call.refuse("any arguments")


@primitive("stack")
def stack(call: Primitive) -> Value:
    """Several tensors along a new axis."""
    return torch.stack(call.tensors(), int(call.param("axis", call.param("dimension", 0))))


@primitive("unstack")
def unstack(call: Primitive) -> list[Value]:
    """The entries of an axis."""
    return list(torch.unbind(call.tensor(0), int(call.param("axis"))))


@primitive("tile")
def tile(call: Primitive) -> Value:
    """Repeated along each axis."""
    return call.tensor(0).repeat(list(call.param("reps")))
