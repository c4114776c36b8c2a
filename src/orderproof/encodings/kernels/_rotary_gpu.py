"""The rotary kernel for a GPU, in Triton where it is installed.

Triton is imported at the first rotation of a GPU tensor, not with the package. If it is missing or cannot compile
(it needs a C compiler), rotations run through torch. Under torch.compile they always do, because it fuses them itself.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from orderproof.encodings.kernels._library import KERNELS_ENV_VARIABLE
from orderproof.encodings.kernels._rotary_cpu import copy_if_aliased, is_plain_eager

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def can_rotate_on_gpu(q: Tensor, k: Tensor) -> bool:
    """True if `rotate_on_gpu` accepts these operands: plain tensors on one GPU on which Triton works."""
    return (
        q.is_cuda and is_plain_eager(q, k) and q.device == k.device and q.dtype in _DTYPES and _kernel_works(q.device)
    )


def rotate_on_gpu(
    q: Tensor,
    k: Tensor,
    angles: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]],
    out: tuple[Tensor, Tensor] | None,
    *,
    layout: str,
) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys by cosines and sines, into ``out`` (no gradient) or new tensors (with gradient)."""
    from orderproof.encodings.kernels import _rotary_triton as kernel

    interleaved = layout == "interleaved"
    (q_cos, q_sin), (k_cos, k_sin) = ((cos.contiguous(), sin.contiguous()) for cos, sin in angles)
    if out is not None:
        q, k = copy_if_aliased(q, *out), copy_if_aliased(k, *reversed(out))
        kernel.rotate_into(out[0], q, q_cos, q_sin, interleaved=interleaved)
        kernel.rotate_into(out[1], k, k_cos, k_sin, interleaved=interleaved)
        return out
    return (
        kernel.RotaryFunction.apply(q, q_cos, q_sin, interleaved, False),  # type: ignore[no-untyped-call]
        kernel.RotaryFunction.apply(k, k_cos, k_sin, interleaved, False),  # type: ignore[no-untyped-call]
    )


@cache
def _rotary_triton() -> ModuleType | None:
    """The module with the Triton kernel; None if Triton is missing or ORDERPROOF_KERNELS=0 is set."""
    if os.environ.get(KERNELS_ENV_VARIABLE) == "0":
        return None
    try:
        from orderproof.encodings.kernels import _rotary_triton as kernel
    except ImportError:
        return None
    return kernel


@cache
def _kernel_works(device: torch.device) -> bool:
    """True if the kernel compiles and runs on this device, tried once on one pair."""
    kernel = _rotary_triton()
    if kernel is None:
        return False
    x, one = torch.ones(1, 1, 1, 2, device=device), torch.ones(1, 1, device=device)
    try:
        rotated = kernel.rotate_into(torch.empty_like(x), x, torch.zeros_like(one), one, interleaved=False)
        correct = rotated.flatten().tolist() == [-1.0, 1.0]
    except Exception as error:  # noqa: BLE001 - torch does the work then
        first = str(error).partition("\n")[0]
        reason = f"{type(error).__name__}: {first}"
    else:
        reason = "" if correct else f"a quarter turn of (1, 1) gave {rotated.flatten().tolist()}"
    if reason:
        warnings.warn(f"rotations on {device} run through torch: Triton's kernel fails there ({reason})", stacklevel=2)
    return not reason
