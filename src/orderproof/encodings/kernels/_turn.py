"""The rotation kernel, as tensors see it.

`turn` writes rotated queries and keys into given buffers and knows nothing of gradients; `serves` says whether the
tensors at hand are ones it may be given: ordinary tensors on the CPU, looked at by nobody who traces what happens.
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

from orderproof.encodings._operands import is_row
from orderproof.encodings.kernels._library import few, library, on_large_pages
from orderproof.errors import PositionError

_LEVEL = 1024
_DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float64: 2, torch.float16: 3}
_CALL = struct.Struct("=4qd26q")
# From here on a result is too much for the caches, and writing past them is faster (float32; bfloat16 is not).
_STREAM_BYTES = 1 << 23
# From here on each thread has enough to do to be worth its start.
_THREAD_BYTES = 1 << 22
# Up to so many rows of features a call is small: what stands around the kernel takes longer than the kernel.
_FEW = 1 << 12
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


class Plan:
    """What stays the same from call to call: the kind of rotation, and its angles at 2 * 1024 positions."""

    def __init__(
        self,
        found: ctypes.CDLL,
        few: Callable[..., int],
        frequencies: tuple[float, ...],
        width: int,
        layout: str,
        gain: float,
        axis: tuple[int, ...] | None,
    ) -> None:
        self.arguments = (frequencies, width, layout, gain, axis)
        self.axes = 1 if axis is None else max(axis) + 1
        with torch.device("cpu"):
            self.frequency = torch.tensor(frequencies, dtype=torch.float64)
            steps = torch.arange(_LEVEL, dtype=torch.float64).unsqueeze(-1) * self.frequency
            self.low, self.high = (torch.stack([a.cos(), a.sin()]) for a in (steps, steps * _LEVEL))
            self.axis = torch.tensor(axis or (), dtype=torch.int64)
        addresses = (self.frequency.data_ptr(), self.low.data_ptr(), self.high.data_ptr())
        which = None if axis is None else self.axis.data_ptr()
        self.plan = _Plan(len(frequencies), width, layout == "interleaved", gain, *addresses, which, self.axes)
        self.address = ctypes.addressof(self.plan)
        self.found, self.few = found, few

    def __deepcopy__(self, memo: object) -> Plan:
        return self  # nothing in it ever changes, and its addresses are its own

    def __reduce__(self) -> tuple[object, ...]:
        return plan_of, self.arguments


@lru_cache(maxsize=64)
def plan_of(
    frequencies: tuple[float, ...], width: int, layout: str, gain: float, axis: tuple[int, ...] | None
) -> Plan | None:
    """The plan of a rotation, the same one for the same arguments; None where there is no kernel."""
    found, small = library(), few()
    return None if found is None or small is None else Plan(found, small, frequencies, width, layout, gain, axis)


def serves(q: Tensor, k: Tensor) -> bool:
    """Whether the kernel may be given these: on the CPU, and seen by nobody else."""
    return unseen(q, k) and q.is_cpu and k.is_cpu and q.dtype in _DTYPES


def unseen(q: Tensor, k: Tensor) -> bool:
    """Whether these are ordinary tensors of one dtype, and nobody traces, transforms or differentiates forward."""
    return (
        type(q) is Tensor
        and type(k) is Tensor
        and q.dtype is k.dtype
        and not _compiling()
        and not _dispatch_modes()
        and not _function_modes()
        and forward_ad._current_level < 0
        and _transforms() is None
        and _tracing() is None
    )


def turn_few(
    plan: Plan, width: int, q: Tensor, k: Tensor, p: Tensor, out: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor] | None:
    """The usual small call, a step of decoding, with as little around it as possible; None where it is not that.

    ``out`` may be ``q`` and ``k`` themselves.
    """
    if type(p) is not Tensor or p.dtype is not _INT64 or not p.is_cpu:
        return None
    shape, k_shape = q.shape, k.shape
    if len(shape) != 4 or len(k_shape) != 4:
        return None
    rows, heads, tokens, features = shape
    k_heads = heads
    if shape != k_shape:
        k_heads = k_shape[1]
        if k_shape != (rows, k_heads, tokens, features):
            return None
    if features != width or p.shape != (tokens,) or rows * heads * tokens > _FEW:
        return None
    if not (q.is_contiguous() and k.is_contiguous() and p.is_contiguous()):
        return None
    q_from, k_from = q.data_ptr(), k.data_ptr()
    if out is None:
        turned = _empty_like(q), _empty_like(k)
        q_to, k_to = turned[0].data_ptr(), turned[1].data_ptr()
    elif is_row(out, 2) and out[0] is q and out[1] is k and q is not k:
        turned, q_to, k_to = (q, k), q_from, k_from
    else:
        return None
    dtype, where = _DTYPES[q.dtype], p.data_ptr()
    failed = plan.few(plan.address, dtype, q_to, q_from, k_to, k_from, where, rows, heads, k_heads, tokens)
    return None if failed else turned


def turn(
    plan: Plan, q: Tensor, k: Tensor, p: Tensor, s: Tensor, out: tuple[Tensor, Tensor] | None, *, sign: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Turn queries [batch, head, token, width] at positions p, and keys at positions s, into ``out`` or anew.

    Positions are int64 of shape [token] or [batch, token], after an axis where there are axes, contiguous along
    tokens. ``sign`` -1 turns back.
    """
    if out is None:
        q_out, k_out = torch.empty_like(q), torch.empty_like(k)
        on_large_pages(plan.found, q_out, k_out)
    else:
        q_out, k_out = out
        q, k = apart(q, q_out, k_out), apart(k, k_out, q_out)
    first, second = _side(plan, q_out, q, p), _side(plan, k_out, k, s)
    if first is None or second is None:
        return _by_copy(plan, q, k, p, s, (q_out, k_out), sign=sign)
    size = q.numel() * q.element_size()
    stream = size >= _STREAM_BYTES and q.element_size() >= 4 and q_out is not q
    head = (_DTYPES[q.dtype], 2, q.shape[0], stream, sign)
    if size < 2 * _THREAD_BYTES or (threads := min(torch.get_num_threads(), size // _THREAD_BYTES)) < 2:
        answer = _run(plan, _CALL.pack(*head, *first, *second))
    else:
        calls = [_CALL.pack(*head, *share) for share in _shares((first, second), threads, q.element_size())]
        with ThreadPoolExecutor(threads) as pool:  # ctypes lets go of the interpreter while C runs
            answer = max(pool.map(lambda call: _run(plan, call), calls))
    if answer == 1:
        name, low = ("q", p.min()) if p.min() < 0 else ("k", s.min())
        raise PositionError(f"{name}_positions: expected no negative position, got {int(low)}")
    if answer:
        raise MemoryError(f"turning {list(q.shape)} needs memory for its angles; turn fewer tokens at once")
    return q_out, k_out


def _run(plan: Plan, call: bytes) -> int:
    answer: int = plan.found.turn(plan.address, call)
    return answer


def _side(plan: Plan, out: Tensor, x: Tensor, positions: Tensor) -> tuple[int, ...] | None:
    """What the kernel is told of one side; None where the features of ``x`` or ``out`` are not next to each other."""
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


def _by_copy(
    plan: Plan, q: Tensor, k: Tensor, p: Tensor, s: Tensor, out: tuple[Tensor, Tensor], *, sign: float
) -> tuple[Tensor, Tensor]:
    """The same by way of contiguous tensors, for those whose features are strided."""
    q, k = (x.clone(memory_format=torch.contiguous_format) for x in (q, k))
    turn(plan, q, k, p, s, (q, k), sign=sign)
    return out[0].copy_(q), out[1].copy_(k)


def apart(x: Tensor, own: Tensor, other: Tensor) -> Tensor:
    """``x``, or a copy of it where a write into its own buffer or the other's could come before its last read.

    Where x is its own buffer the other one does not lie upon it, since the two results could not both be held.
    """
    if own is x or (own.data_ptr() == x.data_ptr() and own.stride() == x.stride()):
        return x
    storages = {out.untyped_storage().data_ptr() for out in (own, other)}
    return x.clone() if x.untyped_storage().data_ptr() in storages else x


def _shares(sides: tuple[tuple[int, ...], tuple[int, ...]], threads: int, size: int) -> list[tuple[int, ...]]:
    """The same work cut along the tokens, one piece a thread."""
    pieces = []
    for n in range(threads):
        piece: tuple[int, ...] = ()
        for side in sides:
            start, stop = side[6] * n // threads, side[6] * (n + 1) // threads
            out, x, positions = side[0] + start * side[12] * size, side[1] + start * side[9] * size, side[2] + 8 * start
            piece += (out, x, positions, *side[3:6], stop - start, *side[7:])
        pieces.append(piece)
    return pieces
