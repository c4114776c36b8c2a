"""Mixed rotary encoding (RoPE-Mixed): each head learns in which direction of the plane each pair looks.

    angle of pair i in head h at position p = (row, column):  p[0] f[0, h, i] + p[1] f[1, h, i]

so a score sees how far two patches are apart, along any direction, not the axes alone. The frequencies f are learned,
from a start where half of the pairs of a head look along a random direction and half across it, at the lengths
base ** (-4j / width), j = 0 .. width/4 - 1.

It is relative for any f. Queries and keys of a head share f, so there are as many key heads as query heads.
Source: Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", arXiv:2403.13298, section 3.2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._at_rotate import AtRotate, Side
from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._operands import check_size, working_dtype
from orderproof.encodings._pairs import Layout, check_layout, turn_pairs
from orderproof.encodings._registry import register
from orderproof.encodings.schedules._numbers import check_positive
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("rope_mixed")
class RopeMixed(AtRotate):
    """Queries and keys turned by rows and columns together, at learned frequencies."""

    claims = Claims(site="rotate", relative=True, symmetric=False, ndim=2)

    def __init__(self, head_width: int, heads: int, *, base: float = 10.0, layout: Layout = "half") -> None:
        super().__init__()
        self.head_width = self.turned_width = check_size("RopeMixed", "head_width", head_width)
        if head_width % 4:
            raise EncodingError(f"RopeMixed: head_width must be a multiple of 4, got {head_width}")
        self.heads: int = check_size("RopeMixed", "heads", heads)
        check_positive("RopeMixed", base=base)
        check_layout("RopeMixed", layout)
        self.base = base
        self.layout: Layout = layout
        self.frequencies = nn.Parameter(torch.empty(2, heads, head_width // 2))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of the paper, in layout "half"."""
        return cls(sizes.head_width, sizes.heads)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw a direction for each head anew; half of its pairs look along it and half across."""
        device, quarter = self.frequencies.device, self.head_width // 4
        lengths = self.base ** (torch.arange(quarter, device=device) * (-4 / self.head_width))
        along = torch.rand(self.heads, 1, device=device) * (2 * math.pi)
        directions = torch.cat([along.expand(-1, quarter), (along + math.pi / 2).expand(-1, quarter)], dim=-1)
        self.frequencies.copy_(lengths.repeat(2) * torch.stack([directions.sin(), directions.cos()]))

    def turned(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "2 *batch token"],
        *,
        side: Side,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Queries and keys, turned alike."""
        del side, lengths
        row, column = (axis[..., None, :, None] for axis in positions.to(torch.float64))
        by_row, by_column = self.frequencies.to(torch.float64).unsqueeze(-2)
        angles = row * by_row + column * by_column
        dtype = working_dtype(x)
        return turn_pairs(x, angles.cos().to(dtype), angles.sin().to(dtype), layout=self.layout)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.head_width}, {self.heads}, base={self.base}, layout={self.layout!r}"
