"""Geometric frequencies, as in the papers.

    frequency[i] = base ** (-2i / width),   i = 0 .. width/2 - 1

The first pair rotates by one radian per position, each later pair more slowly.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5; Su et al. 2021, "RoFormer",
arXiv:2104.09864, section 3.2.2.
"""

from __future__ import annotations

from orderproof.encodings._frequencies import Spectrum


def geometric_frequencies(*, width: int, base: float) -> Spectrum:
    """A geometric series from 1 with ratio base ** (-2 / width)."""
    return Spectrum(frequencies=tuple(base ** (-2 * i / width) for i in range(width // 2)))
