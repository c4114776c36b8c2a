"""The parameters of a model in float64, each converted once for all graphs and float64 modules of the model.

An audit runs the model and its graphs in several call modes. With a copy for each of them, the copies would take most
of the memory of the audit.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from orderproof.cast_on_use import cast_tensor

_Place = tuple[int, tuple[int, ...], tuple[int, ...], torch.dtype]


class Float64Parameters:
    """Parameters in float64, found by the memory that the original occupies."""

    def __init__(self, *, on_use: bool = False) -> None:
        """Start without any; ``on_use``: large ones are cast where they are used."""
        self.on_use = on_use
        self._converted: dict[_Place, tuple[Tensor, Tensor]] = {}  # with the original, so that its memory stays its own

    def convert(self, value: Tensor) -> Tensor:
        """The float64 copy of this parameter; the parameter itself if it is not a plain tensor of another precision."""
        if not _can_be_shared(value):
            return value.double() if value.is_floating_point() else value
        place = (value.data_ptr(), tuple(value.shape), value.stride(), value.dtype)
        if place not in self._converted:
            self._converted[place] = (value, self._cast(value))
        return self._converted[place][1]

    def _cast(self, value: Tensor) -> Tensor:
        return cast_tensor(value, torch.float64) if self.on_use else value.detach().double()

    def convert_module(self, module: nn.Module) -> nn.Module:
        """A float64 copy of a module whose parameters are the shared copies; it has its own buffers."""
        converted = {
            id(p): nn.Parameter(self.convert(p), requires_grad=p.requires_grad)
            for p in module.parameters()
            if _can_be_shared(p)
        }
        return copy.deepcopy(module, converted).double()  # deepcopy takes the values of its memo as made

    def clear(self) -> None:
        """Forget the copies; they are made again when they are needed."""
        self._converted.clear()


def _can_be_shared(value: Tensor) -> bool:
    """True for a tensor that conversion copies, and whose memory identifies it."""
    plain = type(value) in (Tensor, nn.Parameter) and value.layout is torch.strided and not value.is_meta
    return plain and value.is_floating_point() and value.dtype is not torch.float64
