"""Slow pairs dropped (HoPE, high-frequency rotary): pairs that never finish a turn in training stand still.

    frequency[i] = f[i]  where f[i] >= 2 pi / length,  else 0          f[i] = base ** (-2i / width)

A pair slower than that shows angles past the trained length that it never showed in training; standing still it
carries content alone. (At least three encodings are called HoPE; two others are hyperbolic, and for video.)
Source: Chen et al. 2024, "HoPE: A Novel Positional Encoding Without Long-Term Decay for Enhanced Context Awareness and
Extrapolation", arXiv:2410.21216.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_length
from orderproof.encodings.schedules.geometric import geometric


@dataclass(frozen=True)
class DropSlow:
    """Pairs whose wave is longer than the trained length stand still."""

    length: int
    """The length the model is trained on [tokens]."""

    def __post_init__(self) -> None:
        check_length("DropSlow", length=self.length)

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies, 0 for those that are too slow."""
        plain = geometric(width=width, base=base).frequencies
        slowest = 2 * math.pi / self.length
        return Spectrum(frequencies=tuple(f if f >= slowest else 0.0 for f in plain))
