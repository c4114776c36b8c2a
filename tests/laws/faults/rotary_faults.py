"""Faults of rotations: layouts that do not match, and confused axes."""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.blocks.transformer_adapter import tiny_decoder
from orderproof.encodings import Rotary
from tests.laws.faults.fault import Planted


class TiledAngles(Rotary):
    """Cosines are tiled (a b a b), and neighbouring features paired (x0 x1, x2 x3)."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def encode(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        del side
        cos, sin = (each.unsqueeze(-3) for each in self.cos_sin(positions, dtype=x.dtype, lengths=lengths))
        return self.turn(x, cos, sin)

    def turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotate the features by the cosines and sines of each pair."""
        a, b = x[..., 0::2], x[..., 1::2]
        swapped = torch.stack([-b, a], dim=-1).flatten(-2)
        return x * torch.cat([cos, cos], dim=-1) + swapped * torch.cat([sin, sin], dim=-1)


class CutTable(TiledAngles):
    """Sines and cosines are interleaved in one table, and read as its halves."""

    def turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        sin, cos = torch.stack([sin, cos], dim=-1).flatten(-2).chunk(2, dim=-1)
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class WrongPartner(TiledAngles):
    """Neighbouring features are paired, but the partners are ordered by halves."""

    def turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x[..., 0::2], x[..., 1::2]
        return x * cos.repeat_interleave(2, -1) + torch.cat([-b, a], dim=-1) * sin.repeat_interleave(2, -1)


class HeadAxis(Rotary):
    """The rotation runs along the head axis: heads are rotated by their index, and tokens not at all."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def encode(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        heads = torch.arange(x.shape[1]).expand(len(x), -1)
        return super().encode(x.transpose(1, 2), heads, side=side, lengths=lengths).transpose(1, 2)  # type: ignore[arg-type]


FAULTS = (
    Planted(
        TiledAngles,
        lambda: tiny_decoder(TiledAngles(8)),
        ("position_shift",),
        ("xiangking/ark-nlp#47", "Tongjilibo/bert4torch#1"),
    ),
    Planted(CutTable, lambda: tiny_decoder(CutTable(8)), ("position_shift",), ("NVIDIA/ngpt#10",)),
    Planted(
        WrongPartner, lambda: tiny_decoder(WrongPartner(8)), ("position_shift",), ("huggingface/transformers#16298",)
    ),
    Planted(HeadAxis, lambda: tiny_decoder(HeadAxis(8)), ("ignored_arguments",), ("mlfoundations/open_lm#4",)),
)
