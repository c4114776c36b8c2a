"""Frequencies and angles of rotary encodings.

    angle[p, i] = p * frequency[i]

Frequencies are Python floats, so that casting a module does not change them; a schedule defines them (see `schedules`).
Frequencies that depend on the context length differ between rows. An angle is the float64 product of an integer
position and a frequency; its cosine and sine are rounded once, to the requested dtype.
At p = 131071 an angle in float32 has an error of 4e-3; this one of 1e-11.

Compiled layers with equal frequencies share their cosines: the frequencies are one tensor (`_shared_constant`), so the
compiler sees equal expressions, and it stores their values (`_stored`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from orderproof.encodings.checks import device_constant

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """The frequencies of a rotation and its scaling factors."""

    frequencies: tuple[float, ...]
    """One per feature pair [radians per position]."""
    attention_scaling: float = 1.0
    """Factor on cosines and sines."""
    score_scale: float = 1.0
    """Factor on scores in addition to 1 / sqrt(head_width)."""

    def __post_init__(self) -> None:
        """Keep the frequencies also as a tensor, which spectra of equal frequencies share."""
        object.__setattr__(self, "_constant", None if _in_dispatch_mode() else _shared_constant(self.frequencies))


class PerRowSpectrum(NamedTuple):
    """The frequencies and the attention scaling of each row, float64; one row if all have the same length."""

    frequencies: Float[Tensor, "row pair"]
    attention_scaling: Float[Tensor, " row"]


class Schedule(Protocol):
    """A rule for the frequencies, such as a scaling for longer sequences; see `schedules`."""

    def __call__(self, *, width: int, base: float) -> Spectrum:
        """The spectrum of a rotation of ``width`` features whose unscaled frequencies have this base."""
        ...


@runtime_checkable
class LengthSchedule(Schedule, Protocol):
    """A schedule that depends on the context length; calling it gives the spectrum at its default length."""

    @property
    def default_length(self) -> int:
        """The context length without ``lengths`` [tokens]; larger positions then have no frequencies."""
        ...

    def spectrum_at(self, lengths: Int[Tensor, " row"], *, width: int, base: float) -> PerRowSpectrum:
        """The frequencies at each length, without data-dependent control flow."""
        ...


def cos_sin(
    positions: Int[Tensor, "*axes_and_batch token"],
    spectrum: Spectrum | PerRowSpectrum,
    *,
    dtype: torch.dtype,
    pair_axes: tuple[int, ...] | None = None,
) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
    """The cosine and sine of every angle, times the attention scaling, rounded once to ``dtype``.

    ``pair_axes`` is the position axis of each pair; None if positions have one axis.
    """
    wide = positions.to(torch.float64)
    wide = wide.unsqueeze(-1) if pair_axes is None else wide[list(pair_axes)].movedim(0, -1)
    if isinstance(spectrum, PerRowSpectrum):
        angles = wide * spectrum.frequencies.unsqueeze(-2)
        scaling = spectrum.attention_scaling[:, None, None]
        return _stored((angles.cos() * scaling).to(dtype)), _stored((angles.sin() * scaling).to(dtype))
    angles = wide * _frequencies(spectrum, positions.device)
    cos, sin = angles.cos(), angles.sin()
    if spectrum.attention_scaling != 1.0:
        cos, sin = cos * spectrum.attention_scaling, sin * spectrum.attention_scaling
    return _stored(cos.to(dtype)), _stored(sin.to(dtype))


def _frequencies(spectrum: Spectrum, device: torch.device) -> Float[Tensor, " pair"]:
    """The frequencies in float64. For torch.compile, equal frequencies are one tensor."""
    constant: Tensor | None = getattr(spectrum, "_constant", None)
    if constant is None or not _in_torch_compile():
        return device_constant(spectrum.frequencies, device)
    return constant.to(device)


@lru_cache(maxsize=256)
def _shared_constant(frequencies: tuple[float, ...]) -> Tensor:
    with torch.device("cpu"), torch.inference_mode(mode=False):
        return torch.tensor(frequencies, dtype=torch.float64)


def _stored(x: Tensor) -> Tensor:
    """``x``; inductor stores it, where it would compute a cosine again for each head and each layer.

    Inductor stores the operand of a view with explicit strides. In a 4-layer stack on a CPU it needed 0.2 of the time.
    """
    return x.as_strided(x.size(), x.stride()) if _in_torch_compile() else x


def _in_torch_compile() -> bool:
    return torch.compiler.is_compiling() and not torch.compiler.is_exporting()


def _in_dispatch_mode() -> bool:
    """True where a new tensor is fake, or recorded."""
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0
