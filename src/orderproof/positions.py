"""Positions: which place in the order each token takes, as data.

A position is an integer that somebody states; it is never read off a tensor's shape. Positions have shape

    [token]  or  [batch, token]                    one number a token (text)
    [axis, token]  or  [axis, batch, token]        several numbers a token (pictures, video), where axes are asked for

Each function here builds the positions of one situation, or maps some to others; `check` is what every encoding asks
of those it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from orderproof.errors import PositionError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

INTEGERS = frozenset(
    {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64}
)


def arange(n: int, *, device: torch.device | str | None = None) -> Int[Tensor, " token"]:
    """The positions 0, 1, ..., n - 1 of one unpadded sequence."""
    return torch.arange(_count("n", n), device=device)


def offset(
    past: int | Int[Tensor, "*batch"], n: int, *, device: torch.device | str | None = None
) -> Int[Tensor, "*batch token"]:
    """The positions of n tokens that follow ``past`` others: past, past + 1, ..., past + n - 1.

    A tensor of shape [batch] gives each row its own past, and positions of shape [batch, token].
    """
    if not isinstance(past, Tensor):
        return arange(n, device=device) + _count("past", past)
    if past.dtype not in INTEGERS or past.dim() > 1:
        raise PositionError(f"past: expected an integer, or an integer tensor of shape [batch], got {_kind(past)}")
    if readable(past) and past.numel() and int(past.min()) < 0:
        raise PositionError(f"past: expected integers, 0 or more, got {int(past.min())}")
    if device is not None and past.device != torch.device(device):
        raise PositionError(f"past: expected device {device}, got {past.device}; leave device out, or move past first")
    return past.long().unsqueeze(-1) + arange(n, device=past.device)


def from_mask(mask: Bool[Tensor, "*batch token"] | Int[Tensor, "*batch token"]) -> Int[Tensor, "*batch token"]:
    """The positions of padded rows: real tokens (True or 1) count 0, 1, 2, ..., wherever the padding stands.

    A pad token gets position 0, so that a row never needs more positions than it has real tokens;
    hiding it is the padding mask's work.
    """
    if not _integers(mask, booleans=True):
        raise PositionError(f"mask: expected booleans or integers 0 and 1, got {_kind(mask)}; real tokens are 1")
    if mask.dim() not in (1, 2):
        raise PositionError(f"mask: expected shape [token] or [batch, token], got {list(mask.shape)}")
    real = mask.long()
    if readable(real) and bool(((real != 0) & (real != 1)).any()):
        came = f"{int(real.min())} to {int(real.max())}"
        raise PositionError(f"mask: expected only 0 and 1, got {came}; real tokens are 1")
    return (real.cumsum(-1) - 1) * real


def packed(cu_seqlens: Int[Tensor, " boundary"]) -> Int[Tensor, " token"]:
    """The positions of documents packed in one row: each starts again at 0.

    ``cu_seqlens`` holds the boundaries 0, n1, n1 + n2, ... [tokens]. Positions alone do not keep documents
    apart: `documents` tells which token belongs to which, and attention takes that as ``q_documents``.
    """
    numbers = documents(cu_seqlens)
    starts = cu_seqlens.long()[numbers]
    return torch.arange(len(starts), device=starts.device) - starts


def documents(cu_seqlens: Int[Tensor, " boundary"]) -> Int[Tensor, " token"]:
    """The number of the document each token of a packed row belongs to: 0, 0, ..., 1, 1, ..."""
    if not _integers(cu_seqlens) or cu_seqlens.dim() != 1 or len(cu_seqlens) < 1:
        raise PositionError(f"cu_seqlens: expected integers of shape [documents + 1], got {_kind(cu_seqlens)}")
    lengths = cu_seqlens.long().diff()
    if readable(cu_seqlens) and (int(cu_seqlens[0]) != 0 or bool((lengths < 0).any())):
        came = str(cu_seqlens[:8].tolist()) if len(cu_seqlens) <= 8 else f"{cu_seqlens[:8].tolist()} and more"
        raise PositionError(f"cu_seqlens: expected boundaries that start at 0 and never fall, got {came}")
    return torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)


def from_documents(documents: Int[Tensor, "*batch token"]) -> Int[Tensor, "*batch token"]:
    """The positions of packed rows told by document numbers: they start again at 0 wherever the number changes.

    What the numbers are does not matter, so a stretch of padding with a number of its own counts from 0 too. Two
    documents side by side need different numbers.
    """
    if not _integers(documents) or documents.dim() not in (1, 2):
        raise PositionError(f"documents: expected integers of shape [token] or [batch, token], got {_kind(documents)}")
    place = torch.arange(documents.shape[-1], device=documents.device).expand(documents.shape)
    numbers = documents.long()
    first = torch.ones_like(numbers[..., :1], dtype=torch.bool)
    begins = torch.cat([first, numbers[..., 1:] != numbers[..., :-1]], dim=-1)[..., : documents.shape[-1]]
    return place - torch.where(begins, place, 0).cummax(dim=-1).values


def randomized(
    n: int,
    largest: int,
    *,
    batch: int | None = None,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
) -> Int[Tensor, "*batch token"]:
    """Drawn positions, in order: n different ones of 0, 1, ..., largest, every choice as likely as any other.

    A model that is trained on them has seen every position up to the largest, whatever the length of its rows. A
    ``generator`` gives the same draw for the same seed; ``batch`` rows are drawn one by one. They are for training:
    a draw for each call of a trained model would make its answer random.
    Source: Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers",
    arXiv:2305.16843, section 3.
    """
    n, largest = _count("n", n), _count("largest", largest)
    if n > largest + 1:
        raise PositionError(f"n: expected at most {largest + 1} different positions up to {largest}, got {n}")
    if generator is not None and device is not None and generator.device.type != torch.device(device).type:
        raise PositionError(f"generator: expected device {device}, got {generator.device}")
    at = generator.device if device is None and generator is not None else device
    rows = [
        torch.randperm(largest + 1, generator=generator, device=at)[:n].sort().values
        for _ in range(1 if batch is None else _count("batch", batch))
    ]
    if batch is None:
        return rows[0]
    return torch.stack(rows) if rows else torch.empty(0, n, dtype=torch.int64, device=at)


def self_extend(
    positions: Int[Tensor, "*batch token"], *, group: int, window: int
) -> tuple[Int[Tensor, "*batch token"], Int[Tensor, "*batch token"]]:
    """The positions of queries, and of keys, as far pairs see them: neighbours share one, so that distances shrink.

        q = m // group + window - window // group        k = n // group

    A query at m sees a key at n < m at the distance m - n within the window, and at q - k past it, which is about
    window + (m - n - window) / group: a model trained on T positions so reads (T - window) * group + window.
    The choice is made for each pair, so no single set of positions does it: score once with the positions as they are
    and once with these, take the first where m - n < window, then the softmax. That holds for encodings that are
    relative and for causal attention; keys are to be kept unturned.
    Source: Jin et al. 2024, "LLM Maybe LongLM: Self-Extend LLM Context Window Without Tuning", arXiv:2401.01325,
    section 3.3.
    """
    p = check(positions)
    for name, value in (("group", group), ("window", window)):
        if _count(name, value) < 1:
            raise PositionError(f"{name}: expected an integer, 1 or more, got {value!r}")
    grouped = p // group
    return grouped + (window - window // group), grouped


def grid(h: int, w: int, *, device: torch.device | str | None = None) -> Int[Tensor, "2 token"]:
    """The positions of h x w patches read row by row: axis 0 is the row (y), axis 1 the column (x)."""
    row, column = (arange(_count(name, size), device=device) for name, size in (("h", h), ("w", w)))
    return torch.stack([row.repeat_interleave(w), column.repeat(h)])


def mrope(t: int, h: int, w: int, *, past: int = 0, device: torch.device | str | None = None) -> Int[Tensor, "3 token"]:
    """The (time, row, column) positions of t frames of h x w patches that follow ``past`` positions.

    Text beside them counts alike on all three axes, ``offset(past, n).expand(3, n)``, and goes on after a
    picture at past + max(t, h, w).
    Source: Wang et al. 2024, "Qwen2-VL", arXiv:2409.12191, section 2.1.
    """
    time = arange(_count("t", t), device=device).repeat_interleave(_count("h", h) * _count("w", w))
    rows_and_columns = grid(h, w, device=device).repeat(1, t)
    return torch.cat([time.unsqueeze(0), rows_and_columns]) + _count("past", past)


def check(
    positions: Tensor,
    *,
    name: str = "positions",
    axes: int | None = None,
    batch: int | None = None,
    tokens: int | None = None,
    device: torch.device | None = None,
) -> Int[Tensor, "*axes_and_batch token"]:
    """Refuse positions that are not non-negative integers of the expected shape; return them as int64.

    ``axes`` is the number of axes where there are several; ``batch``, ``tokens`` and ``device`` are checked where
    given. Values are looked at only where that costs no wait and no branch on data: see `readable`.
    """
    if not isinstance(positions, Tensor):
        raise PositionError(f"{name}: expected a tensor of integers, got {_kind(positions)}; see positions.arange")
    if positions.dtype not in INTEGERS:
        raise PositionError(f"{name}: expected an integer dtype, got {positions.dtype}; convert with .long()")
    shape = list(positions.shape)
    wanted = "[token] or [batch, token]" if axes is None else f"[{axes}, token] or [{axes}, batch, token]"
    own = shape if axes is None else shape[1:]
    if len(own) not in (1, 2) or (axes is not None and shape[0] != axes):
        raise PositionError(f"{name}: expected shape {wanted}, got {shape}")
    if tokens is not None and own[-1] != tokens:
        raise PositionError(f"{name}: expected {tokens} tokens, shape {wanted}, got {shape}")
    if batch is not None and len(own) == 2 and own[0] not in (1, batch):
        raise PositionError(f"{name}: expected a batch of {batch} (or 1), shape {wanted}, got {shape}")
    if device is not None and positions.device != device:
        raise PositionError(f"{name}: expected device {device}, got {positions.device}; move with .to('{device}')")
    positions = positions.long()
    if readable(positions) and positions.numel() and int(positions.min()) < 0:
        raise PositionError(f"{name}: expected no negative position, got {int(positions.min())}")
    return positions


def readable(tensor: Tensor) -> bool:
    """Whether values may be looked at: on the CPU, not while tracing, and not on a tensor without values."""
    return not torch.compiler.is_compiling() and tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor)


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | torch.SymInt) or value < 0:
        raise PositionError(f"{name}: expected an integer, 0 or more, got {value!r}")
    return cast("int", value)


def _integers(x: object, *, booleans: bool = False) -> bool:
    return isinstance(x, Tensor) and (x.dtype in INTEGERS or (booleans and x.dtype == torch.bool))


def _kind(x: object) -> str:
    return f"{x.dtype} of shape {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
