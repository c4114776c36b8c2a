"""DINOv3's rotary encoding: axial RoPE on coordinates from -1 to 1, so that every picture spans the same angles.

    c[a] = 2 (p[a] + 1/2) / size[a] - 1                   the centre of patch p on axis a of a grid of `size` patches
    angle of pair j of axis a:  2 pi c[a] base ** (-2j / w),   w = head_width / axes

A position means nothing without its grid, so the grid is an argument; a picture of another resolution is read with an
encoding of another grid, and spans the same angles. Within one grid c is a multiple of p and a constant, so a score of
two patches sees how far apart they are. Tokens without a place in the picture (class, register) are not turned: give
it the patches alone. (Shifting, jittering and rescaling the coordinates at random in training is the trainer's
work, not this function's.)

`normalise` says what an axis is divided by where sides differ: its own size ("separate", as DINOv3 was trained), the
larger or the smaller of all sizes ("max", "min").
Source: Siméoni et al. 2025, "DINOv3", arXiv:2508.10104, section 3.2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Self

import torch
from torch import Tensor

from orderproof.encodings._at_rotate import Side
from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings._operands import check_most, check_size, constant
from orderproof.encodings._pairs import Layout
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import Rotation
from orderproof.encodings.axial import axial_spectrum
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("dino_v3")
class DinoV3Rope(Rotation):
    """Queries and keys turned by where in the picture they stand."""

    def __init__(
        self,
        head_width: int,
        *,
        grid: tuple[int, ...],
        base: float = 100.0,
        normalise: Literal["separate", "max", "min"] = "separate",
        layout: Layout = "half",
    ) -> None:
        for a, size in enumerate(grid):
            check_size("DinoV3Rope", f"grid[{a}]", size)
        if len(grid) < 2:
            raise EncodingError(f"DinoV3Rope: grid must have a size for each of two axes or more, got {grid!r}")
        if normalise not in ("separate", "max", "min"):
            raise EncodingError(f"DinoV3Rope: normalise must be 'separate', 'max' or 'min', got {normalise!r}")
        plain, axis = axial_spectrum("DinoV3Rope", head_width, axes=len(grid), base=base)
        spans = grid if normalise == "separate" else ({"max": max, "min": min}[normalise](grid),) * len(grid)
        spectrum = Spectrum(
            frequencies=tuple(2 * math.pi * f / spans[a] for f, a in zip(plain.frequencies, axis, strict=True))
        )
        super().__init__(head_width, spectrum, layout=layout, axis=axis)
        self.claims = Claims(site="rotate", relative=True, symmetric=False, ndim=len(grid), max_position=min(grid) - 1)
        self.spans = spans
        self._plan = None  # the kernel counts positions from 0, and these count from the middle
        self.grid = grid
        self.base = base
        self.normalise = normalise

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """A square grid whose sides hold the model's stated length."""
        if sizes.length is None:
            raise EncodingError("DinoV3Rope: a grid needs a size; state it, as in Transformer(..., length=32)")
        return cls(sizes.head_width, grid=(sizes.length, sizes.length))

    def check_side(self, side: Side, x: Tensor, positions: Tensor) -> Int[Tensor, "*axes_and_batch token"]:
        """Refuse an operand or positions that do not fit, or lie outside the grid."""
        positions = super().check_side(side, x, positions)
        for a, (own, size) in enumerate(zip(positions, self.grid, strict=True)):
            wanted = f"DinoV3Rope: {side}_positions on axis {a} must be below {size}, the grid's size"
            check_most(own, size - 1, wanted + ", got {came}")
        return positions

    def cos_sin(
        self,
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        dtype: torch.dtype,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
        """The cosine and sine of every angle; 2p + 1 - size is exact, and the angle one product of it."""
        spans = constant(self.spans, positions.device, dtype=torch.int64).view(-1, *[1] * (positions.dim() - 1))
        return super().cos_sin(2 * positions + 1 - spans, dtype=dtype, lengths=lengths)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{super().extra_repr()}, grid={self.grid}, base={self.base}, normalise={self.normalise!r}"
