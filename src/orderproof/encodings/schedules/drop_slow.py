"""High-frequency rotary (HoPE): pairs that do not complete a period within the training length are not rotated.

    frequency[i] = f[i]  if f[i] >= 2 pi / length,  else 0          f[i] = base ** (-2i / width)

A lower frequency reaches angles beyond the training length that it never had in training; not rotated, the pair carries
content only. (At least three encodings are called HoPE; the other two are hyperbolic, and for video.)
Source: Chen et al. 2024, "HoPE: A Novel Positional Encoding Without Long-Term Decay for Enhanced Context Awareness and
Extrapolation", arXiv:2410.21216.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_length
from orderproof.encodings.schedules.geometric import geometric_frequencies


@dataclass(frozen=True)
class DropLowFrequencies:
    """Zero the frequencies whose period exceeds the training length."""

    length: int
    """The training length [tokens]."""

    def __post_init__(self) -> None:
        check_length("DropLowFrequencies", length=self.length)

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies; 0 for dropped ones."""
        plain = geometric_frequencies(width=width, base=base).frequencies
        slowest = 2 * math.pi / self.length
        return Spectrum(frequencies=tuple(f if f >= slowest else 0.0 for f in plain))
