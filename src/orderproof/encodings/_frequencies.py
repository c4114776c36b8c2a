"""Frequencies and angles: how fast each feature pair turns, and how far it has turned at a position.

    angle[p, i] = p * frequency[i]          frequency[i] = base ** (-2i / width),   i = 0 .. width/2 - 1

Frequencies are Python floats, so that no cast of a module can touch them. An angle is the float64 product of an
integer position and a frequency; its cosine and sine are rounded once, to the dtype that is asked for.
At p = 131071 an angle kept in float32 is off by 4e-3; this one by 1e-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """The frequencies of a rotation, and the number its cosines and sines are multiplied by."""

    frequencies: tuple[float, ...]
    """One for each feature pair [radians per position]."""
    gain: float = 1.0


class Schedule(Protocol):
    """A rule for the frequencies, such as a scaling for longer sequences."""

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The spectrum of a rotation of ``width`` features whose unscaled frequencies have this base."""
        ...


def geometric(*, width: int, base: float) -> Spectrum:
    """The schedule of the papers: each frequency is the one before it times base ** (-2 / width)."""
    return Spectrum(frequencies=tuple(base ** (-2 * i / width) for i in range(width // 2)))


def cos_sin(
    positions: Int[Tensor, "*axes_and_batch token"],
    spectrum: Spectrum,
    *,
    dtype: torch.dtype,
    axis: tuple[int, ...] | None = None,
) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
    """The cosine and sine of every angle, times the gain, rounded once to ``dtype``.

    ``axis`` names, for each pair, the axis of the positions that turns it; None where positions have one axis.
    """
    frequencies = torch.tensor(spectrum.frequencies, dtype=torch.float64, device=positions.device)
    wide = positions.to(torch.float64)
    wide = wide.unsqueeze(-1) if axis is None else wide[list(axis)].movedim(0, -1)
    angles = wide * frequencies
    cos, sin = angles.cos(), angles.sin()
    if spectrum.gain != 1.0:
        cos, sin = cos * spectrum.gain, sin * spectrum.gain
    return cos.to(dtype), sin.to(dtype)
