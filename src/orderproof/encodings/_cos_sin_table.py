"""Tables of cosines and sines of many positions, by the angle addition theorem.

    e^{i (1024 h + l) w} = e^{i 1024 h w} e^{i l w},     0 <= l < 1024

Both factors come from short tables in float64, so an entry costs one complex product instead of a cosine and a sine,
and is as exact: at p = 10**6 the rounding of the angle has an error of 1e-10, the product adds 1e-16, and the result is
rounded once. Positions from 2**20 on are computed directly. An entry depends only on its position, not on the other
requested positions. On the CPU a compiled kernel computes float32 tables if available; other devices, tracing and
torch.func use cosine and sine directly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings import kernels
from orderproof.encodings._frequencies import Spectrum, cos_sin
from orderproof.encodings.checks import check_dtype, in_transform
from orderproof.errors import EncodingError
from orderproof.positions import arange, has_readable_values

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_RADIX = 1024
_MAX_FACTORED_POSITION = _RADIX * _RADIX
# Complex numbers per block, so that they stay in the CPU caches.
_BLOCK = 1 << 16


def cos_sin_table(
    spectrum: Spectrum, length: int, *, dtype: torch.dtype = torch.float32, device: torch.device | str | None = None
) -> tuple[Float[Tensor, "token pair"], Float[Tensor, "token pair"]]:
    """The cosines and sines of the positions 0 .. length - 1, times the attention scaling, rounded once to ``dtype``.

    Example: ``cos_sin_table(Rotary(64).spectrum, 4096)``. Raises `EncodingError` for anything but a `Spectrum`.
    """
    if not isinstance(spectrum, Spectrum):
        raise EncodingError(f"cos_sin_table: expected a Spectrum, such as Rotary(64).spectrum, got {spectrum!r}")
    check_dtype("cos_sin_table", dtype)
    return cos_sin_rows(arange(length, device=device), spectrum, dtype=dtype)


def cos_sin_rows(
    positions: Int[Tensor, "*batch token"], spectrum: Spectrum, *, dtype: torch.dtype
) -> tuple[Float[Tensor, "*batch token pair"], Float[Tensor, "*batch token pair"]]:
    """The cosines and sines of checked positions, times the attention scaling, rounded once to ``dtype``."""
    if type(positions) is not Tensor or not has_readable_values(positions) or in_transform():
        return cos_sin(positions, spectrum, dtype=dtype)
    if torch._C._len_torch_dispatch_stack():
        return cos_sin(positions, spectrum, dtype=dtype)
    flat = positions.contiguous().view(-1)
    shape = (*positions.shape, len(spectrum.frequencies))
    table = (
        kernels.cos_sin_table(spectrum.frequencies, spectrum.attention_scaling, flat)
        if dtype == torch.float32
        else None
    )
    cos, sin = _by_angle_addition(flat, spectrum, dtype) if table is None else table
    return cos.view(shape), sin.view(shape)


def _by_angle_addition(flat: Tensor, spectrum: Spectrum, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The same with torch."""
    low, high = _factor_tables(spectrum.frequencies)
    pairs = len(spectrum.frequencies)
    cos, sin = (torch.empty(len(flat), pairs, dtype=dtype, device=flat.device) for _ in range(2))
    block = max(1, _BLOCK // pairs)
    for start in range(0, len(flat), block):
        p = flat[start : start + block]
        far = p >= _MAX_FACTORED_POSITION
        rotated = low[p % _RADIX].mul_(high[p // _RADIX % _RADIX])
        if spectrum.attention_scaling != 1.0:
            rotated *= spectrum.attention_scaling
        cos[start : start + block], sin[start : start + block] = rotated.real, rotated.imag
        if bool(far.any()):
            indices = far.nonzero().squeeze(-1)
            cos[start + indices], sin[start + indices] = cos_sin(p[indices], spectrum, dtype=dtype)
    return cos, sin


@lru_cache(maxsize=16)
def _factor_tables(frequencies: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """e^{i l w} for l = 0 .. 1023, and e^{i 1024 h w} for h = 0 .. 1023."""
    with torch.device("cpu"), torch.inference_mode(mode=False):
        steps = torch.arange(_RADIX, dtype=torch.float64).unsqueeze(-1) * torch.tensor(frequencies, dtype=torch.float64)
        one = torch.ones((), dtype=torch.float64)
        return torch.polar(one, steps), torch.polar(one, steps * _RADIX)
