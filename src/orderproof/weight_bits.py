"""The weights of a module as one number for each tensor: a quick test that no call changed them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.cast_on_use import CastOnUse, source_of

_INTEGERS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}  # by their width [bytes]


def weight_bits(module: nn.Module, *, own: bool = False) -> dict[str, int]:
    """The sum of the bits of each parameter and buffer, by name, shape and dtype; none of a meta tensor.

    A change of one element changes the sum. An exchange of elements does not.

    ``own``: only of tensors in memory of their own. One that is cast where it is used has that of another model, and
    cannot be written.
    """
    return {
        f"{name} {list(x.shape)} {x.dtype}": _sum_of_bits(source_of(x).detach())
        for name, x in (*module.named_parameters(), *module.named_buffers())
        if x.device.type != "meta" and not (own and isinstance(x, CastOnUse))
    }


def _sum_of_bits(x: Tensor) -> int:
    """The sum modulo 2**64 of the memory, read as the widest integers that fit its size and its place."""
    data = x.contiguous().reshape(-1)
    size, start = data.numel() * data.element_size(), data.storage_offset() * data.element_size()
    width = next(width for width in _INTEGERS if size % width == 0 and start % width == 0)
    return int(data.view(_INTEGERS[width]).sum(dtype=torch.int64)) if size else 0
