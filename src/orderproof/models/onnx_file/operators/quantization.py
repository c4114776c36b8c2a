"""Numbers of eight bits whose scale is computed from the values: one scale for a whole tensor, all rows together."""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.values import Value

GREATEST = 255  # of eight bits


@operator("DynamicQuantizeLinear")
def dynamic_quantize(call: Operation) -> list[Value]:
    """Integers from 0 to 255, their scale and their zero, such that all values and 0 are in range."""
    x = call.tensor(0)
    least, greatest = torch.clamp(x.amin(), max=0.0), torch.clamp(x.amax(), min=0.0)
    scale = (greatest - least) / GREATEST
    zero = torch.clamp(torch.round(-least / scale), 0, GREATEST)
    found = torch.clamp(torch.round(x / scale) + zero, 0, GREATEST)
    return [found.to(torch.uint8), scale, zero.to(torch.uint8)]


@operator("MatMulInteger")
def matmul_integer(call: Operation) -> Value:
    """A product of matrices of small integers, each without its zero."""
    return torch.matmul(_centred(call, 0), _centred(call, 1)).to(torch.int32)


def _centred(call: Operation, place: int) -> Tensor:
    x, zero = call.tensor(place), call.optional_tensor(place + 2)
    if zero is not None and zero.ndim > 0 and zero.numel() > 1:
        zero = zero.unsqueeze(-1) if place == 0 else zero
    return x.to(torch.int32) if zero is None else x.to(torch.int32) - zero.to(torch.int32)
