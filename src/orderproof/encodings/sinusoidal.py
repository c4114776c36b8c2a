"""Sinusoidal position encoding: add waves of many lengths to the embeddings.

    e(p)[2i] = sin(p * frequency[i])       e(p)[2i + 1] = cos(p * frequency[i])       layout "interleaved"
    e(p)[i]  = sin(p * frequency[i])       e(p)[width/2 + i] = cos(p * frequency[i])  layout "concatenated"

    frequency[i] = base ** (-2i / width)               spacing "open": the paper, Marian, Pegasus, DistilBERT
    frequency[i] = base ** (-i / (width/2 - 1))        spacing "closed": tensor2tensor, fairseq, M2M100, Whisper

for i = 0 .. width/2 - 1. The layouts are the same features in another order; the spacings are other frequencies: the
last is exactly 1 / base where the spacing is closed. Weights trained with one of the four are wrong with the others.
(fairseq and M2M100 count real tokens from padding_idx + 1: add that to the positions.)

e(p + s) is a rotation of e(p) that depends on s only, but scores also see where the rotation starts: the encoding
is not relative.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5; tensor2tensor,
tensor2tensor/layers/common_attention.py, get_timing_signal_1d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings._encoding import Claims, PositionalEncoding, Sizes
from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings._operands import check_dtype, check_features, check_size, working_dtype
from orderproof.encodings._registry import register
from orderproof.encodings._table import rows
from orderproof.encodings.schedules._numbers import check_positive
from orderproof.encodings.schedules.geometric import geometric
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

WaveLayout = Literal["interleaved", "concatenated"]
Spacing = Literal["open", "closed"]


@register("sinusoidal")
class Sinusoidal(PositionalEncoding):
    """Waves added to the embeddings."""

    claims = Claims(site="embed", relative=False, symmetric=False)

    def __init__(
        self,
        width: int,
        *,
        base: float = 10_000.0,
        layout: WaveLayout = "interleaved",
        spacing: Spacing = "open",
    ) -> None:
        super().__init__()
        self.width = check_size("Sinusoidal", "width", width, even=True)
        self.spectrum = spectrum_of("Sinusoidal", width, base=base, layout=layout, spacing=spacing)
        self.base = base
        self.layout: WaveLayout = layout
        self.spacing: Spacing = spacing

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The encoding of the paper."""
        return cls(sizes.width)

    def table(
        self, positions: Int[Tensor, "*batch token"], *, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "*batch token width"]:
        """The row e(p) of each position, rounded once to ``dtype``."""
        check_dtype("Sinusoidal", dtype)
        return waves(place.check(positions), self.spectrum, layout=self.layout, dtype=dtype)

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
        return f"{self.width}, base={self.base}, layout={self.layout!r}, spacing={self.spacing!r}"


def spectrum_of(owner: str, width: int, *, base: float, layout: str, spacing: str) -> Spectrum:
    """The frequencies of ``width`` features of waves, after a look at the arguments."""
    check_positive(owner, base=base)
    if layout not in ("interleaved", "concatenated"):
        raise EncodingError(f"{owner}: layout must be 'interleaved' or 'concatenated', got {layout!r}")
    if spacing not in ("open", "closed"):
        raise EncodingError(f"{owner}: spacing must be 'open' or 'closed', got {spacing!r}")
    if spacing == "open":
        return geometric(width=width, base=base)
    if width < 4:
        raise EncodingError(f"{owner}: spacing 'closed' needs two waves, one at each end, got {width} features")
    last = width // 2 - 1
    return Spectrum(frequencies=tuple(base ** (-i / last) for i in range(width // 2)))


def waves(
    positions: Int[Tensor, "*batch token"], spectrum: Spectrum, *, layout: WaveLayout, dtype: torch.dtype
) -> Float[Tensor, "*batch token width"]:
    """The sine and cosine of every angle, in the order of the layout, rounded once to ``dtype``."""
    cos, sin = rows(positions, spectrum, dtype=dtype)
    if layout == "interleaved":
        return torch.stack([sin, cos], dim=-1).flatten(-2)
    return torch.cat([sin, cos], dim=-1)
