"""xPos: rotary encoding whose feature pairs decay with the distance.

    q[m] is rotated by m * frequency[i] and multiplied by zeta[i] ** (m / scale_base)
    k[n] is rotated by n * frequency[i] and multiplied by zeta[i] ** (-n / scale_base)
    zeta[i] = (2i / width + gamma) / (1 + gamma),   frequency[i] = base ** (-2i / width)

Pair i of a score is multiplied by zeta[i] ** ((m - n) / scale_base): high frequencies decay first. Exponents count from
position 0, never from the middle of the current input (which invalidates cached keys when more tokens come), so the
score depends only on the distance.

For keys after the query the factor grows without bound, so it is defined for causal attention only. Positions are
limited: the powers themselves grow until their product with a key overflows. A position whose power exceeds the square
root of the dtype's largest number raises an error (about 18 100 in float32 and bfloat16, 2266 in float16, with the
paper's constants).
Source: Sun et al. 2022, "A Length-Extrapolatable Transformer", arXiv:2212.10554, section 2.2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._frequencies import cos_sin
from orderproof.encodings._query_key_encoding import QueryKeyEncoding, QueryOrKey
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_base import rotary_spectrum
from orderproof.encodings._rotary_pairs import RotaryLayout, apply_rotary, check_rotary_layout
from orderproof.encodings.checks import check_max_position, check_size, device_constant, working_dtype
from orderproof.encodings.schedules._numbers import check_positive

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("xpos")
class XPos(QueryKeyEncoding):
    """Rotary encoding with exponential decay of the scores."""

    def __init__(
        self,
        head_width: int,
        *,
        base: float = 10_000.0,
        scale_base: float = 512.0,
        gamma: float = 0.4,
        layout: RotaryLayout = "half",
    ) -> None:
        super().__init__()
        self.head_width = self.output_head_dim = check_size("XPos", "head_width", head_width, even=True)
        self.spectrum = rotary_spectrum("XPos", None, width=head_width, base=base)
        check_positive("XPos", scale_base=scale_base, gamma=gamma)
        check_rotary_layout("XPos", layout)
        self.base = base
        self.scale_base = scale_base
        self.gamma = gamma
        self.layout: RotaryLayout = layout
        self.log_decay_rates = tuple(
            math.log((2 * i / head_width + gamma) / (1 + gamma)) / scale_base for i in range(head_width // 2)
        )
        self.claims = Claims(
            site="rotate",
            relative=True,
            symmetric=False,
            causal_only=True,
            max_position=self.max_position_for(torch.float32),
        )

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The paper's encoding, in layout "half"."""
        return cls(sizes.head_width, **options)

    def max_position_for(self, dtype: torch.dtype) -> int:
        """The largest position whose powers are below the square root of the largest number of ``dtype``."""
        return int(math.log(torch.finfo(dtype).max) / 2 / -self.log_decay_rates[0])

    def encode(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*batch token"],
        *,
        side: QueryOrKey,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token head_width"]:
        """Rotate and scale queries, which decay with their position, or keys, which grow."""
        del lengths
        last = self.max_position_for(x.dtype)
        wanted = f"XPos: {side}_positions must be at most {last} in {x.dtype}"
        check_max_position(positions, last, wanted + ", got {came}; use a larger scale_base or shorter rows")
        cos, sin = cos_sin(positions, self.spectrum, dtype=torch.float64)
        decay = device_constant(self.log_decay_rates, x.device)
        powers = (positions.to(torch.float64).unsqueeze(-1) * (decay if side == "q" else -decay)).exp()
        cos, sin = ((part * powers).to(working_dtype(x)) for part in (cos, sin))
        if cos.dim() == 3:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return apply_rotary(x, cos, sin, layout=self.layout)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        numbers = f"base={self.base}, scale_base={self.scale_base}, gamma={self.gamma}"
        return f"{self.head_width}, {numbers}, layout={self.layout!r}"
