"""The rotary kernel for the CPU.

`rotate` writes rotated queries and keys into buffers and records no gradient. `can_rotate_on_cpu` tells whether it
accepts some tensors: plain tensors on the CPU, outside of tracing and transforms.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd import forward_ad

from orderproof import kernel_switch
from orderproof.encodings._rotary_pairs import RotaryLayout
from orderproof.encodings.kernels._library import advise_huge_pages, library, small_rotate
from orderproof.errors import PositionError

_RADIX = 1024
_DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float64: 2, torch.float16: 3}
_CALL = struct.Struct("=4qd26q")
# Results of this size exceed the caches, and non-temporal stores are faster (for float32, not for bfloat16).
_NON_TEMPORAL_STORE_BYTES = 1 << 23
# Work per thread that is worth the cost of starting one.
_THREAD_BYTES = 1 << 22
# Calls up to this size are worth an attempt of the kernel for small calls, which decides.
_SMALL_CALL_ELEMENTS = 1 << 20
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._functorch.peek_interpreter_stack
_tracing = torch._C._get_tracing_state
_compiling = torch.compiler.is_compiling
_empty_like, _INT64 = torch.empty_like, torch.int64


class _Plan(ctypes.Structure):
    _fields_ = (
        ("pairs", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("interleaved", ctypes.c_int64),
        ("gain", ctypes.c_double),
        ("frequency", ctypes.c_void_p),
        ("low", ctypes.c_void_p),
        ("high", ctypes.c_void_p),
        ("axis", ctypes.c_void_p),
        ("axes", ctypes.c_int64),
    )


class RotaryPlan:
    """The constants of a rotation: sizes, layout, and the angles at 2 * 1024 positions."""

    def __init__(
        self,
        library: ctypes.CDLL,
        rotate_small: Callable[..., int] | None,
        frequencies: tuple[float, ...],
        width: int,
        layout: RotaryLayout,
        gain: float,
        axis: tuple[int, ...] | None,
    ) -> None:
        self.arguments = (frequencies, width, layout, gain, axis)
        self.axes = 1 if axis is None else max(axis) + 1
        with torch.device("cpu"):
            self.frequency = torch.tensor(frequencies, dtype=torch.float64)
            steps = torch.arange(_RADIX, dtype=torch.float64).unsqueeze(-1) * self.frequency
            self.low, self.high = (torch.stack([a.cos(), a.sin()]) for a in (steps, steps * _RADIX))
            self.axis = torch.tensor(axis or (), dtype=torch.int64)
        addresses = (self.frequency.data_ptr(), self.low.data_ptr(), self.high.data_ptr())
        which = None if axis is None else self.axis.data_ptr()
        self.plan = _Plan(len(frequencies), width, layout == "interleaved", gain, *addresses, which, self.axes)
        self.address = ctypes.addressof(self.plan)
        self.library, self.rotate_small = library, rotate_small

    def __deepcopy__(self, memo: object) -> RotaryPlan:
        return self  # immutable, and its addresses are not shared

    def __reduce__(self) -> tuple[object, ...]:
        return rotary_plan, self.arguments


@lru_cache(maxsize=64)
def rotary_plan(
    frequencies: tuple[float, ...], width: int, layout: RotaryLayout, gain: float, axis: tuple[int, ...] | None
) -> RotaryPlan | None:
    """The plan of a rotation, cached by its arguments; None if there is no compiled kernel."""
    loaded = library()
    return None if loaded is None else RotaryPlan(loaded, small_rotate(), frequencies, width, layout, gain, axis)


def can_rotate_on_cpu(q: Tensor, k: Tensor) -> bool:
    """True if the CPU kernel accepts these operands."""
    return is_plain_eager(q, k) and q.is_cpu and k.is_cpu and q.dtype in _DTYPES


def is_plain_eager(q: Tensor, k: Tensor) -> bool:
    """True for plain tensors of one dtype outside of tracing, function transforms and forward-mode gradients."""
    return type(q) is Tensor and type(k) is Tensor and q.dtype is k.dtype and not _is_traced()


def _is_traced() -> bool:
    """True where an operator may be traced, intercepted or transformed, or the kernels are switched off."""
    return not (
        kernel_switch.enabled
        and not _compiling()
        and not _dispatch_modes()
        and not _function_modes()
        and forward_ad._current_level < 0
        and _transforms() is None
        and _tracing() is None
    )


def rotate_small(plan: RotaryPlan, q: Tensor, k: Tensor, p: Tensor, out: object) -> tuple[Tensor, Tensor] | None:
    """A small contiguous call without gradients, such as a decoding step; None for any other call.

    Each check takes a good part of the time of the kernel, so all are made here, once. ``out`` may be ``q`` and ``k``
    themselves.
    """
    rotate_small = plan.rotate_small
    if rotate_small is None:
        return None
    if not (type(q) is type(k) is type(p) is Tensor and q.is_cpu and k.is_cpu and p.is_cpu) or _is_traced():
        return None
    which = _DTYPES.get(q.dtype)
    if which is None or k.dtype is not q.dtype or p.dtype is not _INT64:
        return None
    if (q.requires_grad or k.requires_grad) and torch.is_grad_enabled():
        return None
    if not (q.is_contiguous() and k.is_contiguous() and p.is_contiguous()):
        return None
    q_from, k_from = q.data_ptr(), k.data_ptr()
    if out is None:
        if q.numel() > _SMALL_CALL_ELEMENTS or k.numel() > _SMALL_CALL_ELEMENTS:
            return None
        rotated = _empty_like(q), _empty_like(k)
        q_to, k_to = rotated[0].data_ptr(), rotated[1].data_ptr()
    elif isinstance(out, tuple) and len(out) == 2 and out[0] is q and out[1] is k and q is not k:
        rotated, q_to, k_to = out, q_from, k_from
    else:
        return None
    where = p.data_ptr()
    failed = rotate_small(plan.address, which, q_to, q_from, k_to, k_from, where, q.shape, k.shape, p.shape)
    return None if failed else rotated


def rotate(
    plan: RotaryPlan,
    q: Tensor,
    k: Tensor,
    p: Tensor,
    s: Tensor,
    out: tuple[Tensor, Tensor] | None,
    *,
    sign: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Rotate queries [batch, head, token, width] at positions p, and keys at positions s, into ``out`` or new tensors.

    Positions are int64, [token] or [batch, token], with a leading dimension for several axes, contiguous along
    tokens. ``sign=-1`` rotates by the negative angles.
    """
    if out is None:
        q_out, k_out = torch.empty_like(q), torch.empty_like(k)
        advise_huge_pages(plan.library, q_out, k_out)
    else:
        q_out, k_out = out
        q, k = copy_if_aliased(q, q_out, k_out), copy_if_aliased(k, k_out, q_out)
    first, second = _pack_operand(plan, q_out, q, p), _pack_operand(plan, k_out, k, s)
    if first is None or second is None:
        return _rotate_via_copy(plan, q, k, p, s, (q_out, k_out), sign=sign)
    size = q.numel() * q.element_size()
    stream = size >= _NON_TEMPORAL_STORE_BYTES and q.element_size() >= 4 and q_out is not q
    head = (_DTYPES[q.dtype], 2, q.shape[0], stream, sign)
    if size < 2 * _THREAD_BYTES or (threads := min(torch.get_num_threads(), size // _THREAD_BYTES)) < 2:
        status = _run(plan, _CALL.pack(*head, *first, *second))
    else:
        calls = [_CALL.pack(*head, *share) for share in _split_tokens((first, second), threads, q.element_size())]
        with ThreadPoolExecutor(threads) as pool:  # ctypes releases the GIL while C runs
            status = max(pool.map(lambda call: _run(plan, call), calls))
    if status == 1:
        name, low = ("q", p.min()) if p.min() < 0 else ("k", s.min())
        raise PositionError(f"{name}_positions: expected no negative position, got {int(low)}")
    if status:
        raise MemoryError(f"rotating {list(q.shape)} needs memory for its angles; rotate fewer tokens at once")
    return q_out, k_out


def _run(plan: RotaryPlan, call: bytes) -> int:
    status: int = plan.library.rotate(plan.address, call)
    return status


def _pack_operand(plan: RotaryPlan, out: Tensor, x: Tensor, positions: Tensor) -> tuple[int, ...] | None:
    """The kernel arguments of one operand; None if the features of ``x`` or ``out`` are not contiguous."""
    _, heads, tokens, _ = x.shape
    row, head, token, feature = x.stride()
    out_row, out_head, out_token, out_feature = out.stride()
    if feature != 1 or out_feature != 1:
        return None
    steps = positions.stride()
    axis = steps[0] if plan.axes > 1 else 0
    by_row = steps[-2] if len(steps) == 2 + (plan.axes > 1) and positions.shape[-2] > 1 else 0
    addresses = (out.data_ptr(), x.data_ptr(), positions.data_ptr())
    return (*addresses, axis, by_row, heads, tokens, row, head, token, out_row, out_head, out_token)


def _rotate_via_copy(
    plan: RotaryPlan, q: Tensor, k: Tensor, p: Tensor, s: Tensor, out: tuple[Tensor, Tensor], *, sign: float
) -> tuple[Tensor, Tensor]:
    """`rotate` through contiguous copies, for strided features."""
    q, k = (x.clone(memory_format=torch.contiguous_format) for x in (q, k))
    rotate(plan, q, k, p, s, (q, k), sign=sign)
    return out[0].copy_(q), out[1].copy_(k)


def copy_if_aliased(x: Tensor, own: Tensor, other: Tensor) -> Tensor:
    """``x``, or a copy of it if writing into either buffer could overwrite it before its last read.

    If x is its own buffer, the other buffer does not overlap it: the two results could not both be stored.
    """
    if own is x or (own.data_ptr() == x.data_ptr() and own.stride() == x.stride()):
        return x
    storages = {out.untyped_storage().data_ptr() for out in (own, other)}
    return x.clone() if x.untyped_storage().data_ptr() in storages else x


def _split_tokens(sides: tuple[tuple[int, ...], tuple[int, ...]], threads: int, size: int) -> list[tuple[int, ...]]:
    """The same call split along tokens, one part per thread."""
    pieces = []
    for n in range(threads):
        piece: tuple[int, ...] = ()
        for side in sides:
            start, stop = side[6] * n // threads, side[6] * (n + 1) // threads
            out, x, positions = side[0] + start * side[12] * size, side[1] + start * side[9] * size, side[2] + 8 * start
            piece += (out, x, positions, *side[3:6], stop - start, *side[7:])
        pieces.append(piece)
    return pieces
