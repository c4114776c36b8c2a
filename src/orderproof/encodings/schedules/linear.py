"""Linear scaling (position interpolation): every frequency divided by `factor`.

    frequency[i] = base ** (-2i / width) / factor

This is RoPE at the positions p / factor: a sequence `factor` times longer has the angles of the training length.
Adjacent positions become closer by the same factor, in every pair.
Source: Chen et al. 2023, "Extending Context Window of Large Language Models via Positional Interpolation",
arXiv:2306.15595, section 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderproof.encodings._frequencies import Spectrum
from orderproof.encodings.schedules._numbers import check_factor
from orderproof.encodings.schedules.geometric import geometric_frequencies


@dataclass(frozen=True)
class LinearScaling:
    """Divide every frequency by one factor."""

    factor: float

    def __post_init__(self) -> None:
        check_factor("LinearScaling", self.factor)

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The frequencies, each divided by the factor."""
        plain = geometric_frequencies(width=width, base=base).frequencies
        return Spectrum(frequencies=tuple(frequency / self.factor for frequency in plain))
