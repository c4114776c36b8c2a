"""RoPE-Mixed: rotary encoding with a learned direction in the plane for each feature pair of each head.

    angle of pair i in head h at position p = (row, column):  p[0] f[0, h, i] + p[1] f[1, h, i]

A score depends on the distance of two patches along any direction, not only along the axes. The frequencies f are
learned. Initially, half of the pairs of a head have a random direction and half the perpendicular one, with magnitudes
base ** (-4j / width), j = 0 .. width/4 - 1.

It is relative for any f. Queries and keys of a head share f, so there are as many key heads as query heads.
Source: Heo et al. 2024, "Rotary Position Embedding for Vision Transformer", arXiv:2403.13298, section 3.2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._query_key_encoding import QueryKeyEncoding, QueryOrKey
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_pairs import RotaryLayout, apply_rotary, check_rotary_layout
from orderproof.encodings.checks import check_size, working_dtype
from orderproof.encodings.schedules._numbers import check_positive
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("rope_mixed")
class RopeMixed(QueryKeyEncoding):
    """Rotary encoding of rows and columns together, with learned frequencies."""

    claims = Claims(site="rotate", relative=True, symmetric=False, ndim=2)

    def __init__(self, head_width: int, heads: int, *, base: float = 10.0, layout: RotaryLayout = "half") -> None:
        super().__init__()
        self.head_width = self.output_head_dim = check_size("RopeMixed", "head_width", head_width)
        if head_width % 4:
            raise EncodingError(f"RopeMixed: head_width must be a multiple of 4, got {head_width}")
        self.heads: int = check_size("RopeMixed", "heads", heads)
        check_positive("RopeMixed", base=base)
        check_rotary_layout("RopeMixed", layout)
        self.base = base
        self.layout: RotaryLayout = layout
        self.frequencies = nn.Parameter(torch.empty(2, heads, head_width // 2))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The paper's encoding, in layout "half"."""
        return cls(sizes.head_width, sizes.heads, **options)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Reinitialize the frequencies with a random direction per head and its perpendicular."""
        device, quarter = self.frequencies.device, self.head_width // 4
        lengths = self.base ** (torch.arange(quarter, device=device) * (-4 / self.head_width))
        along = torch.rand(self.heads, 1, device=device) * (2 * math.pi)
        directions = torch.cat([along.expand(-1, quarter), (along + math.pi / 2).expand(-1, quarter)], dim=-1)
        self.frequencies.copy_(lengths.repeat(2) * torch.stack([directions.sin(), directions.cos()]))

    def encode(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "2 *batch token"],
        *,
        side: QueryOrKey,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Rotate queries or keys."""
        del side, lengths
        row, column = (axis[..., None, :, None] for axis in positions.to(torch.float64))
        by_row, by_column = self.frequencies.to(torch.float64).unsqueeze(-2)
        angles = row * by_row + column * by_column
        dtype = working_dtype(x)
        return apply_rotary(x, angles.cos().to(dtype), angles.sin().to(dtype), layout=self.layout)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.head_width}, {self.heads}, base={self.base}, layout={self.layout!r}"
