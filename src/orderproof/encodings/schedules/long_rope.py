"""LongRoPE: a searched divisor for each frequency, with one set for short and one for long rows.

    frequency[i] = base ** (-2i / width) / divisor[i]       divisor = long  if length > original, else short
    attention_scaling = sqrt(1 + ln(maximum / original) / ln(original))        1 if maximum <= original

A cache of rotated keys becomes invalid when a row grows past the original length. Therefore the length is an input: the
same length gives the same angles whether a row is processed at once or token by token, alone or in a batch with longer
rows. The default is `maximum`.
Source: Ding et al. 2024, "LongRoPE", arXiv:2402.13753, section 3; Abdin et al. 2024, "Phi-3 Technical Report",
arXiv:2404.14219; one scaling per set is Phi-3.5-MoE's (short_mscale, long_mscale).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._frequencies import PerRowSpectrum, Spectrum
from orderproof.encodings.checks import device_constant
from orderproof.encodings.schedules._numbers import check_length, check_positive
from orderproof.encodings.schedules.geometric import geometric_frequencies
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Int


@dataclass(frozen=True)
class LongRope:
    """Divide each frequency by its own number, from the short or the long set."""

    short: tuple[float, ...]
    """The divisors up to the original length, one per pair."""
    long: tuple[float, ...]
    """The divisors beyond the original length."""
    original: int
    """The training length [tokens]."""
    maximum: int
    """The maximum and default context length [tokens]."""
    short_mscale: float | None = None
    """The attention scaling up to the original length; None: the formula."""
    long_mscale: float | None = None

    def __post_init__(self) -> None:
        check_length("LongRope", original=self.original, maximum=self.maximum)
        if self.original < 2:
            raise EncodingError(f"LongRope: original must be 2 or more, got {self.original!r}")
        for name in ("short", "long"):
            divisors: object = getattr(self, name)
            if not isinstance(divisors, Sequence) or isinstance(divisors, str):
                raise EncodingError(f"LongRope: {name} must be divisors, one per pair, got {divisors!r}")
            object.__setattr__(self, name, tuple(divisors))
            for i, divisor in enumerate(divisors):
                check_positive("LongRope", **{f"{name}[{i}]": divisor})
        for name in ("short_mscale", "long_mscale"):
            if getattr(self, name) is not None:
                check_positive("LongRope", **{name: getattr(self, name)})

    @property
    def default_length(self) -> int:
        """The maximum [tokens]."""
        return self.maximum

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies at the maximum length."""
        short, long = self._spectra(width, base)
        return long if self.maximum > self.original else short

    def spectrum_at(self, lengths: Int[Tensor, " row"], *, width: int, base: float) -> PerRowSpectrum:
        """The frequencies of each row at its length."""
        is_long = lengths > self.original
        (short, long), (short_scaling, long_scaling) = (
            tuple(device_constant(numbers, lengths.device) for numbers in pair)
            for pair in zip(*((s.frequencies, s.attention_scaling) for s in self._spectra(width, base)), strict=True)
        )
        return PerRowSpectrum(
            torch.where(is_long.unsqueeze(-1), long, short), torch.where(is_long, long_scaling, short_scaling)
        )

    def _spectra(self, width: int, base: float) -> tuple[Spectrum, Spectrum]:
        """The spectra up to and beyond the original length."""
        plain = geometric_frequencies(width=width, base=base).frequencies
        ratio = self.maximum / self.original
        formula = math.sqrt(1 + math.log(ratio) / math.log(self.original)) if ratio > 1 else 1.0
        spectra = []
        for name, divisors, scaling in (
            ("short", self.short, self.short_mscale),
            ("long", self.long, self.long_mscale),
        ):
            if len(divisors) != len(plain):
                came = len(divisors)
                raise EncodingError(f"LongRope: {name} must have {len(plain)} divisors, one per pair, got {came}")
            frequencies = tuple(f / divisor for f, divisor in zip(plain, divisors, strict=True))
            spectra.append(Spectrum(frequencies=frequencies, attention_scaling=formula if scaling is None else scaling))
        return spectra[0], spectra[1]
