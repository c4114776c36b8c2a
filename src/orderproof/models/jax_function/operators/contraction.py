"""Products of tensors, and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.jax_function.operators.elementwise import converted
from orderproof.models.jax_function.operators.movement import padded
from orderproof.models.jax_function.primitive import Primitive, Value, primitive


@primitive("dot_general")
def dot_general(call: Primitive) -> Value:
    """Sums of products over pairs of axes: batch axes first, then the free axes of each input.

    The products are those of the dtype of the result; float32 is computed as float32, which is JAX's default on a CPU.
    """
    (left_sum, right_sum), (left_batch, right_batch) = call.param("dimension_numbers")
    a, b = (converted(x, call.result_dtype) for x in call.tensors())
    left_free = [d for d in range(a.ndim) if d not in (*left_sum, *left_batch)]
    right_free = [d for d in range(b.ndim) if d not in (*right_sum, *right_batch)]
    sizes = [b.shape[d] for d in right_free]
    if left_free and left_sum and not left_batch:
        left = _joined(_ordered(a, [*left_free, *left_sum]), len(left_free), len(left_sum))
        right = _matrix(_ordered(b, [*right_sum, *right_free]), 0, len(right_sum))
        found = left @ right
        return found if len(right_free) == 1 else found.reshape([*(a.shape[d] for d in left_free), *sizes])
    batch = [a.shape[d] for d in left_batch]
    left = _ordered(a, [*left_batch, *left_free, *left_sum])
    right = _ordered(b, [*right_batch, *right_sum, *right_free])
    left = _matrix(left, len(batch), len(left_free))
    right = _matrix(right, len(batch), len(right_sum))
    found = left @ right
    if len(left_free) == 1 and len(right_free) == 1:
        return found
    return found.reshape([*batch, *(a.shape[d] for d in left_free), *sizes])


def _ordered(x: Tensor, axes: Sequence[int]) -> Tensor:
    return x if list(axes) == list(range(x.ndim)) else x.permute(list(axes))


def _joined(x: Tensor, free: int, summed: int) -> Tensor:
    """[..., summed axes] with these as one axis."""
    return x if summed == 1 else x.flatten(free)


def _matrix(x: Tensor, batch: int, first: int) -> Tensor:
    """[batch axes, first axes, other axes] with one axis for the first and one for the others."""
    last = x.ndim - batch - first
    if last == 0:
        x = x.unsqueeze(-1)
    elif last > 1:
        x = x.flatten(batch + first)
    if first == 0:
        return x.unsqueeze(batch)
    return x.flatten(batch, batch + first - 1) if first > 1 else x


@primitive("conv_general_dilated")
def convolution(call: Primitive) -> Value:
    """A convolution of any number of axes, with any order of them."""
    numbers = call.param("dimension_numbers")
    if call.param("batch_group_count", 1) != 1:
        raise call.refuse("groups of the batch")
    x, kernel = (converted(t, call.result_dtype) for t in call.tensors())
    x, kernel = x.permute(list(numbers["lhs_spec"])), kernel.permute(list(numbers["rhs_spec"]))
    between = [n - 1 for n in call.param("lhs_dilation")]
    widths = [(low, high, n) for (low, high), n in zip(call.param("padding"), between, strict=True)]
    x = padded(x, [(0, 0, 0), (0, 0, 0), *((0, 0, n) for _, _, n in widths)], 0)
    x = padded(x, [(0, 0, 0), (0, 0, 0), *((low, high, 0) for low, high, _ in widths)], 0)
    functions: dict[int, Any] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
    if x.ndim - 2 not in functions:
        raise call.refuse(f"{x.ndim - 2} axes")
    found = functions[x.ndim - 2](
        x, kernel, None, list(call.param("window_strides")), 0, list(call.param("rhs_dilation")),
        call.param("feature_group_count", 1),
    )  # fmt: skip
    order = list(numbers["out_spec"])
    return found.permute([order.index(d) for d in range(found.ndim)])


@primitive("reduce_window_sum", "reduce_window_max", "reduce_window_min", "reduce_window")
def window(call: Primitive) -> Value:
    """The sum or extreme of each window of the axes."""
    if call.name == "reduce_window" or any(n != 1 for n in call.param("base_dilation", [1])):
        raise call.refuse("this function or a base dilation")
    x, sizes, strides = call.tensor(0), call.param("window_dimensions"), call.param("window_strides")
    empty = {"sum": 0.0, "max": -float("inf"), "min": float("inf")}[call.name.rpartition("_")[2]]
    if not x.is_floating_point() and empty:
        raise call.refuse("integers")
    x = padded(x, [(low, high, 0) for low, high in call.param("padding")], empty)
    gaps = call.param("window_dilation") or [1] * x.ndim
    for d, (size, stride, gap) in enumerate(zip(sizes, strides, gaps, strict=True)):
        if size == 1 and stride == 1:
            continue
        span = (size - 1) * gap + 1
        parts = [x.narrow(d, k * gap, x.shape[d] - span + 1) for k in range(size)]
        found = torch.stack(parts)
        functions: dict[str, Any] = {"sum": found.sum, "max": found.amax, "min": found.amin}
        found = functions[call.name.rpartition("_")[2]](0)
        x = found if stride == 1 else found[(slice(None),) * d + (slice(None, None, stride),)]
    return x
