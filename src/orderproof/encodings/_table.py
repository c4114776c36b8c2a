"""Tables: the cosines and sines of many positions at once, by the addition theorem.

    e^{i (1024 h + l) w} = e^{i 1024 h w} e^{i l w},     0 <= l < 1024

Both factors come from short tables in float64, so a row costs one complex product a pair instead of a cosine and a
sine, and it is as exact: at p = 10**6 the rounding of an angle moves it by 1e-10, the product by 1e-16 more, and the
result is rounded once. Positions from 2**20 on are calculated one by one. What a row holds depends on its position
alone, not on how many others are asked for. On the CPU a compiled kernel does the work in float32 where the package
has one; other devices, and whoever traces, get the cosine and sine themselves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings import kernels
from orderproof.encodings._frequencies import Spectrum, cos_sin
from orderproof.encodings._operands import check_dtype
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_LEVEL = 1024
_NEAR = _LEVEL * _LEVEL
# Complex numbers made at once, so that they stay in the caches.
_BLOCK = 1 << 16


def table(
    spectrum: Spectrum, length: int, *, dtype: torch.dtype = torch.float32, device: torch.device | str | None = None
) -> tuple[Float[Tensor, "token pair"], Float[Tensor, "token pair"]]:
    """The cosines and sines of the positions 0, 1, ..., length - 1, times the gain, rounded once to ``dtype``.

    A rotation has its spectrum at hand: ``table(Rotary(64).spectrum, 4096)``.
    """
    if not isinstance(spectrum, Spectrum):
        raise EncodingError(f"table: spectrum must be a Spectrum, such as Rotary(64).spectrum, got {spectrum!r}")
    check_dtype("table", dtype)
    return rows(place.arange(length, device=device), spectrum, dtype=dtype)


def rows(
    positions: Int[Tensor, "*batch token"], spectrum: Spectrum, *, dtype: torch.dtype
) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
    """The cosines and sines of checked positions, times the gain, rounded once to ``dtype``."""
    if type(positions) is not Tensor or not place.readable(positions) or torch._C._len_torch_dispatch_stack():
        return cos_sin(positions, spectrum, dtype=dtype)
    flat = positions.contiguous().view(-1)
    shape = (*positions.shape, len(spectrum.frequencies))
    found = kernels.table(spectrum.frequencies, spectrum.gain, flat) if dtype == torch.float32 else None
    cos, sin = _added(flat, spectrum, dtype) if found is None else found
    return cos.view(shape), sin.view(shape)


def _added(flat: Tensor, spectrum: Spectrum, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The same by way of torch."""
    low, high = _seeds(spectrum.frequencies)
    pairs = len(spectrum.frequencies)
    cos, sin = (torch.empty(len(flat), pairs, dtype=dtype, device=flat.device) for _ in range(2))
    block = max(1, _BLOCK // pairs)
    for start in range(0, len(flat), block):
        p = flat[start : start + block]
        far = p >= _NEAR
        turned = low[p % _LEVEL].mul_(high[p // _LEVEL % _LEVEL])
        if spectrum.gain != 1.0:
            turned *= spectrum.gain
        cos[start : start + block], sin[start : start + block] = turned.real, turned.imag
        if bool(far.any()):
            which = far.nonzero().squeeze(-1)
            cos[start + which], sin[start + which] = cos_sin(p[which], spectrum, dtype=dtype)
    return cos, sin


@lru_cache(maxsize=16)
def _seeds(frequencies: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """e^{i l w} for l = 0 .. 1023, and e^{i 1024 h w} for h = 0 .. 1023."""
    with torch.device("cpu"), torch.inference_mode(mode=False):
        steps = torch.arange(_LEVEL, dtype=torch.float64).unsqueeze(-1) * torch.tensor(frequencies, dtype=torch.float64)
        one = torch.ones((), dtype=torch.float64)
        return torch.polar(one, steps), torch.polar(one, steps * _LEVEL)
