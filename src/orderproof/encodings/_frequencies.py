"""Frequencies and angles: how fast each feature pair turns, and how far it has turned at a position.

    angle[p, i] = p * frequency[i]

Frequencies are Python floats, so that no cast of a module can touch them; a schedule says what they are (see
`schedules`). Where they depend on the length of a row, each row has its own. An angle is the float64 product of an
integer position and a frequency; its cosine and sine are rounded once, to the dtype that is asked for.
At p = 131071 an angle kept in float32 is off by 4e-3; this one by 1e-11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from orderproof.encodings._operands import constant

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """The frequencies of a rotation, and the number its cosines and sines are multiplied by."""

    frequencies: tuple[float, ...]
    """One for each feature pair [radians per position]."""
    gain: float = 1.0
    score_gain: float = 1.0
    """What scores are multiplied by besides 1 / sqrt(head_width)."""


class RowSpectra(NamedTuple):
    """The frequencies and the gain of each row, float64; one row where all rows have the same length."""

    frequencies: Float[Tensor, "row pair"]
    gains: Float[Tensor, " row"]


class Schedule(Protocol):
    """A rule for the frequencies, such as a scaling for longer sequences."""

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The spectrum of a rotation of ``width`` features whose unscaled frequencies have this base."""
        ...


@runtime_checkable
class LengthSchedule(Schedule, Protocol):
    """A rule whose frequencies depend on the length at which a row is read; called, it answers for its longest."""

    def at(self, lengths: Int[Tensor, " row"], *, width: int, base: float) -> RowSpectra:
        """The frequencies at each length, by arithmetic alone: no branch on what the lengths are."""
        ...


def cos_sin(
    positions: Int[Tensor, "*axes_and_batch token"],
    spectrum: Spectrum | RowSpectra,
    *,
    dtype: torch.dtype,
    axis: tuple[int, ...] | None = None,
) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
    """The cosine and sine of every angle, times the gain, rounded once to ``dtype``.

    ``axis`` names, for each pair, the axis of the positions that turns it; None where positions have one axis.
    """
    wide = positions.to(torch.float64)
    wide = wide.unsqueeze(-1) if axis is None else wide[list(axis)].movedim(0, -1)
    if isinstance(spectrum, RowSpectra):
        angles = wide * spectrum.frequencies.unsqueeze(-2)
        gains = spectrum.gains[:, None, None]
        return (angles.cos() * gains).to(dtype), (angles.sin() * gains).to(dtype)
    angles = wide * constant(spectrum.frequencies, positions.device)
    cos, sin = angles.cos(), angles.sin()
    if spectrum.gain != 1.0:
        cos, sin = cos * spectrum.gain, sin * spectrum.gain
    return cos.to(dtype), sin.to(dtype)
