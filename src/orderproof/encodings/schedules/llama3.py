"""Llama 3.1 scaling: lower the frequencies whose period exceeds the original length.

    f = base ** (-2i / width),   period = 2 pi / f
    frequency = f                                         if period < original / high
              = f / factor                                if period > original / low
              = (1 - s) f / factor + s f                  between,  s = (original / period - low) / (high - low)

Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", arXiv:2407.21783, section 3.2; the formula is that of
Meta's llama-models reference code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor, check_length, check_positive
from orderproof.encodings.schedules.geometric import geometric_frequencies
from orderproof.errors import EncodingError


@dataclass(frozen=True)
class Llama3:
    """Divide low frequencies by the factor and keep high ones; the defaults are those of Llama 3.1."""

    factor: float = 8.0
    low: float = 1.0
    """Frequencies with fewer periods in the original length are divided by the factor."""
    high: float = 4.0
    """Frequencies with more periods are not changed."""
    original: int = 8192
    """The training length [tokens]."""

    def __post_init__(self) -> None:
        check_factor("Llama3", self.factor)
        check_positive("Llama3", low=self.low, high=self.high)
        check_length("Llama3", original=self.original)
        if not self.low < self.high:
            raise EncodingError(f"Llama3: high must be above low={self.low}, got {self.high}")

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The scaled frequencies."""
        plain = geometric_frequencies(width=width, base=base).frequencies
        return Spectrum(frequencies=tuple(self._scaled(frequency) for frequency in plain))

    def _scaled(self, frequency: float) -> float:
        period = 2 * math.pi / frequency
        if period < self.original / self.high:
            return frequency
        if period > self.original / self.low:
            return frequency / self.factor
        share = (self.original / period - self.low) / (self.high - self.low)
        return (1 - share) * frequency / self.factor + share * frequency
