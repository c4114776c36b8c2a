"""The rotation kernel for a GPU, as tensors see it: Triton's, where that is installed.

Triton is looked for when the first tensor on a GPU asks, never when the package is imported. Where it is missing, or
cannot make a kernel (it needs a C compiler), rotations there run through torch, as they do under torch.compile, which
fuses them itself.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from orderproof.encodings.kernels._library import SWITCH
from orderproof.encodings.kernels._turn import apart, unseen

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def serves_on_gpu(q: Tensor, k: Tensor) -> bool:
    """Whether `turn_on_gpu` may be given these: on one GPU, seen by nobody else, and Triton works there."""
    return q.is_cuda and unseen(q, k) and q.device == k.device and q.dtype in _DTYPES and _works(q.device)


def turn_on_gpu(
    q: Tensor,
    k: Tensor,
    angles: tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]],
    out: tuple[Tensor, Tensor] | None,
    *,
    layout: str,
) -> tuple[Tensor, Tensor]:
    """Turn queries and keys by their cosines and sines, into ``out`` or anew; gradients see through the latter."""
    from orderproof.encodings.kernels import _triton_turn as kernel

    interleaved = layout == "interleaved"
    (q_cos, q_sin), (k_cos, k_sin) = ((cos.contiguous(), sin.contiguous()) for cos, sin in angles)
    if out is not None:
        q, k = apart(q, *out), apart(k, *reversed(out))
        kernel.turn_into(out[0], q, q_cos, q_sin, interleaved=interleaved)
        kernel.turn_into(out[1], k, k_cos, k_sin, interleaved=interleaved)
        return out
    return (
        kernel.TurnRows.apply(q, q_cos, q_sin, interleaved, False),  # type: ignore[no-untyped-call]
        kernel.TurnRows.apply(k, k_cos, k_sin, interleaved, False),  # type: ignore[no-untyped-call]
    )


@cache
def _triton_turn() -> ModuleType | None:
    """The module with the kernel; None where Triton is missing, or ORDERPROOF_KERNELS=0 asks for the torch path."""
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        from orderproof.encodings.kernels import _triton_turn as kernel
    except ImportError:
        return None
    return kernel


@cache
def _works(device: torch.device) -> bool:
    """Whether the kernel can be made and run on this device: it is, once, on one pair."""
    kernel = _triton_turn()
    if kernel is None:
        return False
    x, one = torch.ones(1, 1, 1, 2, device=device), torch.ones(1, 1, device=device)
    try:
        turned = kernel.turn_into(torch.empty_like(x), x, torch.zeros_like(one), one, interleaved=False)
        right = turned.flatten().tolist() == [-1.0, 1.0]
    except Exception as error:  # noqa: BLE001  whatever it is, torch can do the work
        first = str(error).partition("\n")[0]
        reason = f"{type(error).__name__}: {first}"
    else:
        reason = "" if right else f"a quarter turn of (1, 1) gave {turned.flatten().tolist()}"
    if reason:
        warnings.warn(f"rotations on {device} run through torch: Triton's kernel fails there ({reason})", stacklevel=2)
    return not reason
