"""Llama 3.1 scaling: stretch pairs whose wave is longer than the original sequence, leave the short waves.

    f = base ** (-2i / width),   wave = 2 pi / f
    frequency = f                                         where wave < original / high
              = f / factor                                where wave > original / low
              = (1 - s) f / factor + s f                  between,  s = (original / wave - low) / (high - low)

Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", arXiv:2407.21783, section 3.2; the formula is that of
Meta's llama-models reference code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor, check_length, check_positive
from orderproof.encodings.schedules.geometric import geometric
from orderproof.errors import EncodingError


@dataclass(frozen=True)
class Llama3:
    """Long waves stretched by the factor, short ones not at all; the defaults are those of Llama 3.1."""

    factor: float = 8.0
    low: float = 1.0
    """Waves that fit fewer times into the original length are stretched whole."""
    high: float = 4.0
    """Waves that fit more often are not stretched."""
    original: int = 8192
    """The length the model was trained on [tokens]."""

    def __post_init__(self) -> None:
        check_factor("Llama3", self.factor)
        check_positive("Llama3", low=self.low, high=self.high)
        check_length("Llama3", original=self.original)
        if not self.low < self.high:
            raise EncodingError(f"Llama3: high must be above low={self.low}, got {self.high}")

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The stretched frequencies."""
        plain = geometric(width=width, base=base).frequencies
        return Spectrum(frequencies=tuple(self._stretched(frequency) for frequency in plain))

    def _stretched(self, frequency: float) -> float:
        wave = 2 * math.pi / frequency
        if wave < self.original / self.high:
            return frequency
        if wave > self.original / self.low:
            return frequency / self.factor
        share = (self.original / wave - self.low) / (self.high - self.low)
        return (1 - share) * frequency / self.factor + share * frequency
