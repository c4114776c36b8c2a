"""xPos: rotary encoding whose pairs fade with the distance.

    q[m] is turned by m * frequency[i] and multiplied by zeta[i] ** (m / scale_base)
    k[n] is turned by n * frequency[i] and multiplied by zeta[i] ** (-n / scale_base)
    zeta[i] = (2i / width + gamma) / (1 + gamma),   frequency[i] = base ** (-2i / width)

so pair i of a score is multiplied by zeta[i] ** ((m - n) / scale_base): fast pairs fade first. The powers count from
position 0 and never from the middle of what is at hand (which makes a cached key wrong when more tokens come), so the
score sees the distance only.

What does not follow: that it may look ahead. For a key after its query the factor grows without bound, so it is
defined for causal attention only. Nor that positions may be as large as one likes: the powers themselves grow until
their product with a key no longer fits the dtype. A position where they pass the square root of the dtype's largest
number is an error (about 18 100 in float32 and bfloat16, 2266 in float16, with the paper's numbers).
Source: Sun et al. 2022, "A Length-Extrapolatable Transformer", arXiv:2212.10554, section 2.2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor

from orderproof.encodings._at_rotate import AtRotate, Side
from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._frequencies import cos_sin
from orderproof.encodings._operands import check_most, check_size, constant, working_dtype
from orderproof.encodings._pairs import Layout, check_layout, turn_pairs
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import spectrum_of
from orderproof.encodings.schedules._numbers import check_positive

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("xpos")
class XPos(AtRotate):
    """Queries and keys turned by position, and scaled so that far pairs fade."""

    def __init__(
        self,
        head_width: int,
        *,
        base: float = 10_000.0,
        scale_base: float = 512.0,
        gamma: float = 0.4,
        layout: Layout = "half",
    ) -> None:
        super().__init__()
        self.head_width = self.turned_width = check_size("XPos", "head_width", head_width, even=True)
        self.spectrum = spectrum_of("XPos", None, width=head_width, base=base)
        check_positive("XPos", scale_base=scale_base, gamma=gamma)
        check_layout("XPos", layout)
        self.base = base
        self.scale_base = scale_base
        self.gamma = gamma
        self.layout: Layout = layout
        self.fading = tuple(
            math.log((2 * i / head_width + gamma) / (1 + gamma)) / scale_base for i in range(head_width // 2)
        )
        self.claims = Claims(
            site="rotate", relative=True, symmetric=False, causal_only=True, max_position=self.reach(torch.float32)
        )

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of the paper, in layout "half"."""
        return cls(sizes.head_width)

    def reach(self, dtype: torch.dtype) -> int:
        """The largest position whose powers are below the square root of the largest number of ``dtype``."""
        return int(math.log(torch.finfo(dtype).max) / 2 / -self.fading[0])

    def turned(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*batch token"],
        *,
        side: Side,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Queries, which fade with their position, or keys, which grow."""
        del lengths
        last = self.reach(x.dtype)
        wanted = f"XPos: {side}_positions must be at most {last} in {x.dtype}"
        check_most(positions, last, wanted + ", got {came}; take a larger scale_base, or cut the row")
        cos, sin = cos_sin(positions, self.spectrum, dtype=torch.float64)
        fading = constant(self.fading, x.device)
        powers = (positions.to(torch.float64).unsqueeze(-1) * (fading if side == "q" else -fading)).exp()
        cos, sin = ((wave * powers).to(working_dtype(x)) for wave in (cos, sin))
        if cos.dim() == 3:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return turn_pairs(x, cos, sin, layout=self.layout)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        numbers = f"base={self.base}, scale_base={self.scale_base}, gamma={self.gamma}"
        return f"{self.head_width}, {numbers}, layout={self.layout!r}"
