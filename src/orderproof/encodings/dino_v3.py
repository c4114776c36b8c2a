"""DINOv3 rotary encoding: axial RoPE on coordinates from -1 to 1, independent of the resolution.

    c[a] = 2 (p[a] + 1/2) / size[a] - 1                   the centre of patch p on axis a of a grid of `size` patches
    angle of pair j of axis a:  2 pi c[a] base ** (-2j / w),   w = head_width / axes

Coordinates depend on the grid, so the grid is a constructor argument; an image of another resolution needs an encoding
of another grid, and covers the same angles. Within one grid c is a multiple of p plus a constant, so scores depend on
the distance of two patches. Class and register tokens have no position and are not rotated: pass only the patches.
(Random shifts, jitter and rescaling of coordinates in training belong to the training code.)

`normalize_coords` selects the divisor of each axis of a non-square grid: its own size ("separate", as DINOv3 was
trained), or the larger or smaller of all sizes ("max", "min").
Source: Siméoni et al. 2025, "DINOv3", arXiv:2508.10104, section 3.2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from torch import Tensor

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings._query_key_encoding import QueryOrKey
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_base import RotaryBase
from orderproof.encodings._rotary_pairs import RotaryLayout
from orderproof.encodings.axial_rotary import axial_spectrum
from orderproof.encodings.checks import check_max_position, check_size, device_constant
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("dino_v3")
class DinoV3Rope(RotaryBase):
    """Axial rotary encoding of coordinates relative to the image."""

    def __init__(
        self,
        head_width: int,
        *,
        grid: tuple[int, ...],
        base: float = 100.0,
        normalize_coords: Literal["separate", "max", "min"] = "separate",
        layout: RotaryLayout = "half",
    ) -> None:
        for a, size in enumerate(grid):
            check_size("DinoV3Rope", f"grid[{a}]", size)
        if len(grid) < 2:
            raise EncodingError(f"DinoV3Rope: grid must have a size for each of two axes or more, got {grid!r}")
        if normalize_coords not in ("separate", "max", "min"):
            came = repr(normalize_coords)
            raise EncodingError(f"DinoV3Rope: normalize_coords must be 'separate', 'max' or 'min', got {came}")
        plain, pair_axes = axial_spectrum("DinoV3Rope", head_width, axes=len(grid), base=base)
        divisors = (
            grid if normalize_coords == "separate" else ({"max": max, "min": min}[normalize_coords](grid),) * len(grid)
        )
        spectrum = Spectrum(
            frequencies=tuple(2 * math.pi * f / divisors[a] for f, a in zip(plain.frequencies, pair_axes, strict=True))
        )
        super().__init__(head_width, spectrum, layout=layout, pair_axes=pair_axes)
        self.claims = Claims(site="rotate", relative=True, symmetric=False, ndim=len(grid), max_position=min(grid) - 1)
        self.axis_sizes = divisors
        self._plan = None  # the kernels need non-negative positions; these are centred
        self.grid = grid
        self.base = base
        self.normalize_coords = normalize_coords

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """A square grid with sides of the model's length."""
        if sizes.length is None:
            raise EncodingError("DinoV3Rope: a grid needs a size; pass it, as in Transformer(..., length=32)")
        return cls(sizes.head_width, **{"grid": (sizes.length, sizes.length), **options})

    def check_side(self, side: QueryOrKey, x: Tensor, positions: Tensor) -> Int[Tensor, "*axes_and_batch token"]:
        """Reject an operand or positions that do not fit, or lie outside the grid."""
        positions = super().check_side(side, x, positions)
        for a, (own, size) in enumerate(zip(positions, self.grid, strict=True)):
            wanted = f"DinoV3Rope: {side}_positions on axis {a} must be below {size}, the grid's size"
            check_max_position(own, size - 1, wanted + ", got {came}")
        return positions

    def cos_sin(
        self,
        positions: Int[Tensor, "*axes_and_batch token"],
        *,
        dtype: torch.dtype,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
        """The cosine and sine of every angle. 2p + 1 - size is an exact integer, and the angle is one product of it."""
        divisors = device_constant(self.axis_sizes, positions.device, dtype=torch.int64).view(
            -1, *[1] * (positions.dim() - 1)
        )
        return super().cos_sin(2 * positions + 1 - divisors, dtype=dtype, lengths=lengths)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        options = f"base={self.base}, normalize_coords={self.normalize_coords!r}"
        return f"{super().extra_repr()}, grid={self.grid}, {options}"
