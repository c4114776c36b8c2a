"""All inputs of a module as one tensor [row, token, ...], so that laws select rows and tokens of all of them.

A module with one input is called with that. Several inputs become integers [row, token, place]: the bits of numbers,
and an input without an axis of tokens, or of rows, at each of them. What accompanies a token so moves with it, and what
belongs to a row moves with its row. Inputs without either are the same in every call.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from orderproof.models.subject import Axis

_BITS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
}


@dataclass(frozen=True)
class _Part:
    """One input: its axes of rows and tokens, and its dtype."""

    row: int | None
    token: int | None
    dtype: torch.dtype

    def split(self, x: Tensor, rows: int, tokens: int) -> Tensor:
        """The input as integers [row, token, place]."""
        if self.dtype in _BITS:
            x = x.contiguous().view(_BITS[self.dtype])
        lead = [axis for axis in (self.row, self.token) if axis is not None]
        x = x.long().movedim(lead, list(range(len(lead)))) if lead else x.long()
        x = x.unsqueeze(0) if self.row is None else x
        x = x if self.token is not None else x.unsqueeze(1)
        return x.reshape(*x.shape[:2], -1).expand(rows, tokens, -1)

    def joined(self, packed: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The input of integers [row, token, place]; ``shape`` is that of its further axes."""
        x = packed if self.row is not None else packed[:1]
        x = x if self.token is not None else x[:, :1]
        if self.dtype in _BITS:
            x = x.to(_BITS[self.dtype]).contiguous().view(self.dtype)
        x = x.to(self.dtype).reshape(*x.shape[:2], *shape)
        if self.token is None:
            x = x.squeeze(1)
        if self.row is None:
            x = x.squeeze(0)
        lead = [axis for axis in (self.row, self.token) if axis is not None]
        return x.movedim(list(range(len(lead))), lead).contiguous() if lead else x


class InputPacking:
    """The inputs of a module as one tensor."""

    def __init__(self, inputs: tuple[Tensor, ...], rows: tuple[bool, ...], axes: tuple[Axis, ...]) -> None:
        """Take the inputs of a call, which of them have rows along their first axis, and their axes of tokens."""
        self.parts = tuple(
            _Part(0 if row else None, axis if isinstance(axis, int) else None, x.dtype)
            for x, row, axis in zip(inputs, rows, axes, strict=True)
        )
        self.rests = tuple(_rest(part, x) for part, x in zip(self.parts, inputs, strict=True))
        self.is_single = len(inputs) == 1 and self.parts[0].row == 0 and self.parts[0].token == 1
        self.has_rows = any(rows)

    def pack(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """The tensor [row, token, ...] for these inputs."""
        if self.is_single:
            return inputs[0]
        rows, tokens = self.size_of(inputs)
        return torch.cat([part.split(x, rows, tokens) for part, x in zip(self.parts, inputs, strict=True)], dim=-1)

    def unpack(self, tokens: Tensor, floats: torch.dtype | None = None) -> tuple[Tensor, ...]:
        """The inputs; those of floating point in a dtype, if one is given."""
        if self.is_single:
            return (tokens,)
        sizes = [prod(rest) for rest in self.rests]
        pieces = torch.split(tokens, sizes, dim=-1)
        found = [part.joined(x, rest) for part, x, rest in zip(self.parts, pieces, self.rests, strict=True)]
        return tuple(x.to(floats) if floats is not None and x.is_floating_point() else x for x in found)

    def size_of(self, inputs: tuple[Tensor, ...]) -> tuple[int, int]:
        """The numbers of rows and tokens of these inputs."""
        pairs = list(zip(self.parts, inputs, strict=True))
        rows = next((x.shape[part.row] for part, x in pairs if part.row is not None), 1)
        return rows, next(x.shape[part.token] for part, x in pairs if part.token is not None)


def _rest(part: _Part, x: Tensor) -> tuple[int, ...]:
    return tuple(size for axis, size in enumerate(x.shape) if axis not in (part.row, part.token))


def float_dtype(module: nn.Module) -> torch.dtype | None:
    """The dtype of the first parameter of floating point; None if there is none."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), None)
