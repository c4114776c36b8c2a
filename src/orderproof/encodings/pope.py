"""PoPE, polar coordinate encoding: magnitudes from features, angles from positions.

    query m, feature c:  softplus(q[c]) e^{i m frequency[c]}
    key n, feature c:    softplus(k[c]) e^{i (n frequency[c] + delta[h, c])}         frequency[c] = base ** (-c / width)
    score = sum_c softplus(q[c]) softplus(k[c]) cos((n - m) frequency[c] + delta[h, c]) / sqrt(width)

for c = 0 .. width - 1: every feature rotates separately, where RoPE rotates pairs. Features set only magnitudes and
cannot shift an angle, which separates content from position. Real and imaginary parts are concatenated, so encoded
queries and keys are twice as wide; the scale is that of the original width.

It is relative. With delta = 0, the initial value, it is also symmetric, because cos is even: a bidirectional encoder
cannot tell a sentence from its reverse until delta is learned. The paper restricts delta to [-2 pi, 0], one full
period, so leaving out the bounds loses nothing.
Source: Gopalakrishnan et al. 2025, "Decoupling the What and Where With Polar Coordinate Positional Embeddings",
arXiv:2509.10534, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._encoding import Claims, ModelSizes
from orderproof.encodings._query_key_encoding import QueryKeyEncoding, QueryOrKey
from orderproof.encodings._registry import register
from orderproof.encodings._rotary_base import rotary_spectrum
from orderproof.encodings.checks import check_size, device_constant, working_dtype
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("pope")
class PoPE(QueryKeyEncoding):
    """Queries and keys as complex numbers: magnitudes from features, angles from positions."""

    claims = Claims(site="rotate", relative=True, symmetric=False)

    def __init__(self, head_width: int, key_heads: int, *, base: float = 10_000.0) -> None:
        super().__init__()
        self.head_width = check_size("PoPE", "head_width", head_width)
        self.output_head_dim = 2 * head_width
        self.key_heads = check_size("PoPE", "key_heads", key_heads)
        self.spectrum = rotary_spectrum("PoPE", None, width=2 * head_width, base=base)
        self.base = base
        self.delta = nn.Parameter(torch.empty(key_heads, head_width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The paper's encoding."""
        return cls(sizes.head_width, sizes.heads, **options)

    def reset_parameters(self) -> None:
        """Initialize delta to zero."""
        nn.init.zeros_(self.delta)

    def encode(
        self,
        x: Float[Tensor, "batch head token head_width"],
        positions: Int[Tensor, "*batch token"],
        *,
        side: QueryOrKey,
        lengths: Int[Tensor, " row"] | None = None,
    ) -> Float[Tensor, "batch head token output_head_dim"]:
        """Real parts, then imaginary parts."""
        del lengths
        dtype = working_dtype(x)
        frequencies = device_constant(self.spectrum.frequencies, x.device)
        angles = (positions.to(torch.float64).unsqueeze(-1) * frequencies).unsqueeze(-3)
        if side == "k":
            if x.shape[1] != self.key_heads:
                raise EncodingError(f"PoPE: k must have {self.key_heads} heads, one per row of delta, got {x.shape[1]}")
            angles = angles + self.delta.to(torch.float64).unsqueeze(-2)
        magnitude = functional.softplus(x.to(dtype))
        return torch.cat([magnitude * angles.cos().to(dtype), magnitude * angles.sin().to(dtype)], dim=-1).to(x.dtype)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.head_width}, {self.key_heads}, base={self.base}"
