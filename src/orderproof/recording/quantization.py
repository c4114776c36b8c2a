"""Simulated quantization by operators that have rules: torch's own have no kernel on tensors without values.

(clamp(round(x / scale) + zero_point, low, high) - zero_point) * scale
"""

from __future__ import annotations

import torch
from torch import Tensor


def per_tensor(x: Tensor, scale: Tensor | float, zero_point: Tensor | int, low: int, high: int) -> Tensor:
    """`fake_quantize_per_tensor_affine` with numbers, or with tensors of one element."""
    if isinstance(scale, Tensor):
        scale = scale.reshape(())
    if isinstance(zero_point, Tensor):
        zero_point = zero_point.reshape(()).to(x.dtype)
    return (torch.clamp(torch.round(x / scale) + zero_point, low, high) - zero_point) * scale


def per_channel(x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, low: int, high: int) -> Tensor:
    """`fake_quantize_per_channel_affine`: a scale for each index of a dimension."""
    shape = [1] * x.dim()
    shape[axis] = -1
    scale, zero_point = scale.reshape(shape), zero_point.reshape(shape).to(x.dtype)
    return (torch.clamp(torch.round(x / scale) + zero_point, low, high) - zero_point) * scale


BY_PARTS = {"fake_quantize_per_tensor_affine": per_tensor, "fake_quantize_per_channel_affine": per_channel}
