"""Linear scaling (position interpolation): every pair turns `factor` times more slowly.

    frequency[i] = base ** (-2i / width) / factor

which is RoPE at the positions p / factor: a sequence `factor` times longer takes the angles of the trained length.
Neighbours come closer by the same factor, in every pair.
Source: Chen et al. 2023, "Extending Context Window of Large Language Models via Positional Interpolation",
arXiv:2306.15595, section 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor
from orderproof.encodings.schedules.geometric import geometric


@dataclass(frozen=True)
class Linear:
    """Every frequency divided by one factor."""

    factor: float

    def __post_init__(self) -> None:
        check_factor("Linear", self.factor)

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies, each divided by the factor."""
        plain = geometric(width=width, base=base).frequencies
        return Spectrum(frequencies=tuple(frequency / self.factor for frequency in plain))
