"""Geometric frequencies: those of the papers.

    frequency[i] = base ** (-2i / width),   i = 0 .. width/2 - 1

The first pair turns by one radian a position, and each pair more slowly than the one before.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5; Su et al. 2021, "RoFormer",
arXiv:2104.09864, section 3.2.2.
"""

from __future__ import annotations

from orderproof.encodings._frequencies import Spectrum


def geometric(*, width: int, base: float) -> Spectrum:
    """Each frequency is the one before it times base ** (-2 / width)."""
    return Spectrum(frequencies=tuple(base ** (-2 * i / width) for i in range(width // 2)))
