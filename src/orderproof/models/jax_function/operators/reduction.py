"""Primitives that reduce axes, run along them, or sort them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from orderproof.models.jax_function.primitive import Primitive, Value, primitive


def _product(x: Tensor, axes: list[int]) -> Tensor:
    for d in sorted(axes, reverse=True):
        x = x.prod(d, dtype=x.dtype)
    return x


_REDUCTIONS: dict[str, Callable[[Tensor, list[int]], Tensor]] = {
    "reduce_sum": lambda x, axes: x.sum(axes, dtype=x.dtype),
    "reduce_max": lambda x, axes: x.amax(axes),
    "reduce_min": lambda x, axes: x.amin(axes),
    "reduce_prod": _product,
    "reduce_or": lambda x, axes: x.any(axes),
    "reduce_and": lambda x, axes: x.all(axes),
}


@primitive(*_REDUCTIONS)
def reduction(call: Primitive) -> Value:
    """A sum, product or extreme over axes."""
    x, axes = call.tensor(0), [int(d) for d in call.param("axes")]
    if call.name in ("reduce_or", "reduce_and") and x.dtype is not torch.bool:
        raise call.refuse("integers")
    return _REDUCTIONS[call.name](x, axes) if axes else x


@primitive("argmax", "argmin")
def arg_extreme(call: Primitive) -> Value:
    """The first index of the largest or smallest entry."""
    (axis,) = call.param("axes")
    function = torch.argmax if call.name == "argmax" else torch.argmin
    return function(call.tensor(0), int(axis)).to(call.result_dtype)


_RUNNING: dict[str, Callable[[Tensor, int], Any]] = {
    "cumsum": lambda x, d: x.cumsum(d, dtype=x.dtype),
    "cumprod": lambda x, d: x.cumprod(d, dtype=x.dtype),
    "cummax": lambda x, d: x.cummax(d).values,
    "cummin": lambda x, d: x.cummin(d).values,
    "cumlogsumexp": torch.logcumsumexp,
}


@primitive(*_RUNNING)
def running(call: Primitive) -> Value:
    """Running sums, products or extremes, from the end if `reverse` is set."""
    x, axis = call.tensor(0), int(call.param("axis"))
    if call.param("reverse"):
        return _RUNNING[call.name](x.flip(axis), axis).flip(axis)
    return _RUNNING[call.name](x, axis)


@primitive("sort")
def sort(call: Primitive) -> list[Value]:
    """Tensors in the order of the first ones; equal entries keep their order."""
    tensors, axis = call.tensors(), int(call.param("dimension"))
    keys = int(call.param("num_keys", 1))
    if len(tensors) == 1:
        return [torch.sort(tensors[0], dim=axis, stable=True).values]
    order = None
    for key in reversed(tensors[:keys]):
        sorted_key = key if order is None else key.gather(axis, order)
        index = torch.sort(sorted_key, dim=axis, stable=True).indices
        order = index if order is None else order.gather(axis, index)
    assert order is not None
    return [x.gather(axis, order) for x in tensors]


@primitive("top_k")
def top_k(call: Primitive) -> list[Value]:
    """The largest entries of an axis, and their indices; of equal ones the first comes first."""
    x, count = call.tensor(0), call.param("k")
    axis = call.param("axis", -1)
    axis = -1 if axis is None else int(axis)
    values, index = torch.sort(x, dim=axis, descending=True, stable=True)
    return [values.narrow(axis, 0, count), index.narrow(axis, 0, count).to(call.dtype(call.dtypes[1]))]
