"""Sinusoidal position encoding: add waves of many lengths to the embeddings.

    e(p)[2i] = sin(p * frequency[i])       e(p)[2i + 1] = cos(p * frequency[i])       layout "interleaved"
    e(p)[i]  = sin(p * frequency[i])       e(p)[width/2 + i] = cos(p * frequency[i])  layout "concatenated"

    frequency[i] = base ** (-2i / width),   i = 0 .. width/2 - 1

e(p + s) is a rotation of e(p) that depends on s only, but scores also see where the rotation starts: the encoding
is not relative. The layouts are the same features in another order, so weights trained with one are wrong with
the other. (tensor2tensor's waves have the exponent -i / (width/2 - 1) and are neither.)
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings._encoding import Claims, PositionalEncoding, Sizes
from orderproof.encodings._frequencies import cos_sin
from orderproof.encodings._operands import check_features, check_size, working_dtype
from orderproof.encodings._registry import register
from orderproof.encodings.schedules.geometric import geometric
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("sinusoidal")
class Sinusoidal(PositionalEncoding):
    """Waves added to the embeddings."""

    claims = Claims(site="embed", relative=False, symmetric=False)

    def __init__(
        self, width: int, *, base: float = 10_000.0, layout: Literal["interleaved", "concatenated"] = "interleaved"
    ) -> None:
        super().__init__()
        self.width = check_size("Sinusoidal", "width", width, even=True)
        if not base > 0:
            raise EncodingError(f"Sinusoidal: base must be positive, got {base!r}")
        if layout not in ("interleaved", "concatenated"):
            raise EncodingError(f"Sinusoidal: layout must be 'interleaved' or 'concatenated', got {layout!r}")
        self.base = base
        self.layout = layout
        self.spectrum = geometric(width=width, base=base)

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of the paper."""
        return cls(sizes.width)

    def table(
        self, positions: Int[Tensor, "*batch token"], *, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "*batch token width"]:
        """The row e(p) of each position, rounded once to ``dtype``."""
        cos, sin = cos_sin(place.check(positions), self.spectrum, dtype=dtype)
        if self.layout == "interleaved":
            return torch.stack([sin, cos], dim=-1).flatten(-2)
        return torch.cat([sin, cos], dim=-1)

    def embed(
        self, x: Float[Tensor, "batch token width"], positions: Int[Tensor, "*batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Add each position's row; the sum is made in float32 or float64 and rounded once."""
        check_features("Sinusoidal", x, self.width)
        positions = place.check(positions, batch=x.shape[0], tokens=x.shape[1], device=x.device)
        wide = working_dtype(x)
        return (x.to(wide) + self.table(positions, dtype=wide)).to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.width}, base={self.base}, layout={self.layout!r}"
