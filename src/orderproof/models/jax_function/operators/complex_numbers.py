"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from typing import Any

import torch

from orderproof.models.jax_function.primitive import Primitive, Value, primitive


@primitive("fft")
def fourier(call: Primitive) -> Value:
    """A Fourier transform of the last axes, or its inverse; of real numbers one half of it."""
    x, lengths = call.tensor(0), list(call.param("fft_lengths"))
    kind = str(call.param("fft_type")).rpartition(".")[2].lower()
    functions: dict[str, Any] = {
        "fft": (torch.fft.fft, torch.fft.fftn), "ifft": (torch.fft.ifft, torch.fft.ifftn),
        "rfft": (torch.fft.rfft, torch.fft.rfftn), "irfft": (torch.fft.irfft, torch.fft.irfftn),
    }  # fmt: skip
    if kind not in functions:
        raise call.refuse(f"the kind {kind}")
    of_one, of_several = functions[kind]
    if len(lengths) == 1:
        return of_one(x, lengths[0], -1)
    return of_several(x, lengths, list(range(-len(lengths), 0)))


@primitive("real", "imag")
def part(call: Primitive) -> Value:
    """The real or the imaginary part."""
    x = call.tensor(0)
    return torch.real(x) if call.name == "real" else torch.imag(x)


@primitive("complex")
def complex_(call: Primitive) -> Value:
    """A complex number of two real ones."""
    return torch.complex(call.tensor(0), call.tensor(1))


@primitive("conj")
def conj(call: Primitive) -> Value:
    """The conjugate; of a real number that number as a complex one."""
    x = call.tensor(0)
    return torch.conj(x).resolve_conj() if x.is_complex() else x.to(call.result_dtype)
