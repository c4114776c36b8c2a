"""Proportional RoPE (p-RoPE): only the highest frequencies are used.

    frequency[i] = base ** (-2i / width) / factor      for i < floor(fraction * width / 2),      0 for the others

The denominator is still the full width, so the rotated pairs rotate exactly as in RoPE, and the others carry content
only. (`Rotary(rotary_width=...)` also rotates fewer features, but its frequencies cover the whole range, with the
denominator rotary_width; and in layout "half" it pairs other features.)
Source: Barbero et al. 2024, "Round and Round We Go! What makes Rotary Positional Encodings useful?", arXiv:2410.06205,
section 6; `factor` as in Gemma's long-context layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor, check_not_negative
from orderproof.encodings.schedules.geometric import geometric_frequencies
from orderproof.errors import EncodingError


@dataclass(frozen=True)
class Proportional:
    """Keep the highest frequencies and zero the others."""

    fraction: float
    """The fraction of rotated pairs, from 0 to 1."""
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_factor("Proportional", self.factor)
        check_not_negative("Proportional", fraction=self.fraction)
        if self.fraction > 1:
            raise EncodingError(f"Proportional: fraction must be from 0 to 1, got {self.fraction!r}")

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies; 0 for pairs that are not rotated."""
        rotated = int(self.fraction * width // 2)
        plain = geometric_frequencies(width=width, base=base).frequencies
        return Spectrum(frequencies=tuple(f / self.factor if i < rotated else 0.0 for i, f in enumerate(plain)))
