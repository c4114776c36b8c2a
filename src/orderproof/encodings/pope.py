"""Polar coordinate encoding (PoPE): a feature says how much, its position says at which angle.

    query m, feature c:  softplus(q[c]) e^{i m frequency[c]}
    key n, feature c:    softplus(k[c]) e^{i (n frequency[c] + delta[h, c])}         frequency[c] = base ** (-c / width)
    score = sum_c softplus(q[c]) softplus(k[c]) cos((n - m) frequency[c] + delta[h, c]) / sqrt(width)

for c = 0 .. width - 1: every feature turns on its own, where RoPE turns pairs. What a token holds sets lengths only and
can never shift an angle, so what and where are told apart. Real and imaginary parts stand side by side, so turned
queries and keys are twice as wide; the scale stays that of the width as it was.

It is relative. Where delta is 0, as at the start, it is also symmetric: cos does not see which came first, and a
bidirectional encoder cannot tell a sentence from its reverse until delta is learned. The paper keeps delta in
[-2 pi, 0], a whole period, so nothing is lost without the bounds.
Source: Gopalakrishnan et al. 2025, "Decoupling the What and Where With Polar Coordinate Positional Embeddings",
arXiv:2509.10534, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._at_rotate import AtRotate, Side
from orderproof.encodings._encoding import Claims, Sizes
from orderproof.encodings._operands import check_size, constant, working_dtype
from orderproof.encodings._registry import register
from orderproof.encodings._rotation import spectrum_of
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("pope")
class PoPE(AtRotate):
    """Queries and keys as lengths, each at the angle of its position."""

    claims = Claims(site="rotate", relative=True, symmetric=False)

    def __init__(self, head_width: int, key_heads: int, *, base: float = 10_000.0) -> None:
        super().__init__()
        self.head_width = check_size("PoPE", "head_width", head_width)
        self.turned_width = 2 * head_width
        self.key_heads = check_size("PoPE", "key_heads", key_heads)
        self.spectrum = spectrum_of("PoPE", None, width=2 * head_width, base=base)
        self.base = base
        self.delta = nn.Parameter(torch.empty(key_heads, head_width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of the paper."""
        return cls(sizes.head_width, sizes.heads)

    def reset_parameters(self) -> None:
        """Start where keys are at the angle of their position."""
        nn.init.zeros_(self.delta)

    def turned(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*batch token"],
        *,
        side: Side,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token turned_width"]:
        """Real parts, then imaginary parts."""
        del lengths
        dtype = working_dtype(x)
        frequencies = constant(self.spectrum.frequencies, x.device)
        angles = (positions.to(torch.float64).unsqueeze(-1) * frequencies).unsqueeze(-3)
        if side == "k":
            if x.shape[1] != self.key_heads:
                raise EncodingError(f"PoPE: k must have {self.key_heads} heads, one a row of delta, got {x.shape[1]}")
            angles = angles + self.delta.to(torch.float64).unsqueeze(-2)
        length = functional.softplus(x.to(dtype))
        return torch.cat([length * angles.cos().to(dtype), length * angles.sin().to(dtype)], dim=-1).to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.head_width}, {self.key_heads}, base={self.base}"
