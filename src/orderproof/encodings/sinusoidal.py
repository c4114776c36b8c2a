"""Sinusoidal position encoding: sines and cosines of many frequencies, added to the embeddings.

    e(p)[2i] = sin(p * frequency[i])       e(p)[2i + 1] = cos(p * frequency[i])       layout "interleaved"
    e(p)[i]  = sin(p * frequency[i])       e(p)[width/2 + i] = cos(p * frequency[i])  layout "concatenated"

    frequency[i] = base ** (-2i / width)               spacing "open": the paper, Marian, Pegasus, DistilBERT
    frequency[i] = base ** (-i / (width/2 - 1))        spacing "closed": tensor2tensor, fairseq, M2M100, Whisper

for i = 0 .. width/2 - 1. The layouts order the same features differently; the spacings are different frequencies: with
"closed", the last one is exactly 1 / base. Weights trained with one of the four combinations are wrong with the others.
(fairseq and M2M100 count real tokens from padding_idx + 1: add that to the positions.)

e(p + s) is a rotation of e(p) that depends only on s, but scores also depend on p: the encoding is not relative.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5; tensor2tensor,
tensor2tensor/layers/common_attention.py, get_timing_signal_1d.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from torch import Tensor

from orderproof.encodings._cos_sin_table import cos_sin_rows
from orderproof.encodings._encoding import Claims, ModelSizes, PositionalEncoding
from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings._registry import register
from orderproof.encodings.checks import check_dtype, check_features, check_size, working_dtype
from orderproof.encodings.schedules._numbers import check_positive
from orderproof.encodings.schedules.geometric import geometric_frequencies
from orderproof.errors import EncodingError
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int

SinusoidalLayout = Literal["interleaved", "concatenated"]
FrequencySpacing = Literal["open", "closed"]


@register("sinusoidal")
class Sinusoidal(PositionalEncoding):
    """Sinusoids of the position, added to the embeddings."""

    claims = Claims(site="embed", relative=False, symmetric=False)

    def __init__(
        self,
        width: int,
        *,
        base: float = 10_000.0,
        layout: SinusoidalLayout = "interleaved",
        spacing: FrequencySpacing = "open",
    ) -> None:
        super().__init__()
        self.width = check_size("Sinusoidal", "width", width, even=True)
        self.spectrum = sinusoidal_spectrum("Sinusoidal", width, base=base, layout=layout, spacing=spacing)
        self.base = base
        self.layout: SinusoidalLayout = layout
        self.spacing: FrequencySpacing = spacing

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The paper's encoding."""
        return cls(sizes.width, **options)

    def encoding_table(
        self, positions: Int[Tensor, "*batch token"], *, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "*batch token width"]:
        """The row e(p) of each position, rounded once to ``dtype``."""
        check_dtype("Sinusoidal", dtype)
        return sinusoids(validate_positions(positions), self.spectrum, layout=self.layout, dtype=dtype)

    def embed(
        self, x: Float[Tensor, "batch token width"], positions: Int[Tensor, "*batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Add each position's row. The sum is computed in float32 or float64 and rounded once."""
        check_features("Sinusoidal", x, self.width)
        positions = validate_positions(positions, batch=x.shape[0], tokens=x.shape[1], device=x.device)
        wide = working_dtype(x)
        return (x.to(wide) + self.encoding_table(positions, dtype=wide)).to(x.dtype)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.width}, base={self.base}, layout={self.layout!r}, spacing={self.spacing!r}"


def sinusoidal_spectrum(owner: str, width: int, *, base: float, layout: str, spacing: str) -> Spectrum:
    """The frequencies of ``width`` features of sinusoids, with checked arguments."""
    check_positive(owner, base=base)
    if layout not in ("interleaved", "concatenated"):
        raise EncodingError(f"{owner}: layout must be 'interleaved' or 'concatenated', got {layout!r}")
    if spacing not in ("open", "closed"):
        raise EncodingError(f"{owner}: spacing must be 'open' or 'closed', got {spacing!r}")
    if spacing == "open":
        return geometric_frequencies(width=width, base=base)
    if width < 4:
        raise EncodingError(f"{owner}: expected at least 4 features for spacing 'closed', got {width}")
    last = width // 2 - 1
    return Spectrum(frequencies=tuple(base ** (-i / last) for i in range(width // 2)))


def sinusoids(
    positions: Int[Tensor, "*batch token"], spectrum: Spectrum, *, layout: SinusoidalLayout, dtype: torch.dtype
) -> Float[Tensor, "*batch token width"]:
    """The sine and cosine of every angle, in the order of the layout, rounded once to ``dtype``."""
    cos, sin = cos_sin_rows(positions, spectrum, dtype=dtype)
    if layout == "interleaved":
        return torch.stack([sin, cos], dim=-1).flatten(-2)
    return torch.cat([sin, cos], dim=-1)
