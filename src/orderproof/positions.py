"""Positions of tokens, as explicit integer tensors.

Positions are inputs; they are never inferred from a tensor's shape. They have shape

    [token]  or  [batch, token]                    one number per token (text)
    [axis, token]  or  [axis, batch, token]        several numbers per token (images, video), for encodings of axes

Each function here builds the positions of one situation or maps positions to others; `validate` is the check that every
encoding applies to its positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from orderproof.errors import PositionError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

INTEGER_DTYPES = frozenset(
    {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64}
)


def arange(n: int, *, device: torch.device | str | None = None) -> Int[Tensor, " token"]:
    """The positions 0, 1, ..., n - 1 of one unpadded sequence."""
    return torch.arange(_validate_count("n", n), device=device)


def offset(
    past: int | Int[Tensor, "*batch"], n: int, *, device: torch.device | str | None = None
) -> Int[Tensor, "*batch token"]:
    """The positions of n tokens after ``past`` earlier tokens: past, past + 1, ..., past + n - 1.

    With a tensor ``past`` of shape [batch], each row has its own, and the result has shape [batch, token]. Raises
    `PositionError` for negative numbers.
    """
    if not isinstance(past, Tensor):
        return arange(n, device=device) + _validate_count("past", past)
    if past.dtype not in INTEGER_DTYPES or past.dim() > 1:
        raise PositionError(f"past: expected an integer, or an integer tensor of shape [batch], got {_describe(past)}")
    if has_readable_values(past) and past.numel() and int(past.min()) < 0:
        raise PositionError(f"past: expected integers, 0 or more, got {int(past.min())}")
    if device is not None and past.device != torch.device(device):
        raise PositionError(f"past: expected device {device}, got {past.device}; leave out device or move past")
    return past.long().unsqueeze(-1) + arange(n, device=past.device)


def from_mask(mask: Bool[Tensor, "*batch token"] | Int[Tensor, "*batch token"]) -> Int[Tensor, "*batch token"]:
    """The positions of padded rows: real tokens (True or 1) count 0, 1, 2, ..., for padding on either side.

    Pad tokens get position 0, so a row never needs more positions than it has real tokens. They must be masked
    separately, by the padding mask.
    """
    if not _is_integer_tensor(mask, booleans=True):
        raise PositionError(f"mask: expected booleans or integers 0 and 1, got {_describe(mask)}; real tokens are 1")
    if mask.dim() not in (1, 2):
        raise PositionError(f"mask: expected shape [token] or [batch, token], got {list(mask.shape)}")
    is_real = mask.long()
    if has_readable_values(is_real) and bool(((is_real != 0) & (is_real != 1)).any()):
        came = f"{int(is_real.min())} to {int(is_real.max())}"
        raise PositionError(f"mask: expected only 0 and 1, got {came}; real tokens are 1")
    return (is_real.cumsum(-1) - 1) * is_real


def packed(cu_seqlens: Int[Tensor, " boundary"]) -> Int[Tensor, " token"]:
    """The positions of documents packed in one row: they restart at 0 in each document.

    ``cu_seqlens`` has the boundaries 0, n1, n1 + n2, ... [tokens]. Positions do not separate the documents: also pass
    `document_ids` to attention, as ``q_document_ids``.
    """
    ids = document_ids(cu_seqlens)
    starts = cu_seqlens.long()[ids]
    return torch.arange(len(starts), device=starts.device) - starts


def document_ids(cu_seqlens: Int[Tensor, " boundary"]) -> Int[Tensor, " token"]:
    """The document of each token of a packed row: 0, 0, ..., 1, 1, ..., for boundaries as in `packed`."""
    if not _is_integer_tensor(cu_seqlens) or cu_seqlens.dim() != 1 or len(cu_seqlens) < 1:
        raise PositionError(
            f"cu_seqlens: expected integers of shape [number of documents + 1], got {_describe(cu_seqlens)}"
        )
    lengths = cu_seqlens.long().diff()
    if has_readable_values(cu_seqlens) and (int(cu_seqlens[0]) != 0 or bool((lengths < 0).any())):
        came = str(cu_seqlens[:8].tolist()) if len(cu_seqlens) <= 8 else f"{cu_seqlens[:8].tolist()} and more"
        raise PositionError(f"cu_seqlens: expected boundaries that start at 0 and never fall, got {came}")
    return torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)


def from_document_ids(document_ids: Int[Tensor, "*batch token"]) -> Int[Tensor, "*batch token"]:
    """The positions of packed rows with these document ids: they restart at 0 wherever the id changes.

    The ids are arbitrary integers; padding with its own id counts from 0, too. Adjacent documents need different ids.
    """
    if not _is_integer_tensor(document_ids) or document_ids.dim() not in (1, 2):
        came = _describe(document_ids)
        raise PositionError(f"document_ids: expected integers of shape [token] or [batch, token], got {came}")
    index = torch.arange(document_ids.shape[-1], device=document_ids.device).expand(document_ids.shape)
    ids = document_ids.long()
    first = torch.ones_like(ids[..., :1], dtype=torch.bool)
    starts = torch.cat([first, ids[..., 1:] != ids[..., :-1]], dim=-1)[..., : document_ids.shape[-1]]
    return index - torch.where(starts, index, 0).cummax(dim=-1).values


def randomized(
    n: int,
    largest: int,
    *,
    batch: int | None = None,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
) -> Int[Tensor, "*batch token"]:
    """Random positions in ascending order: n distinct positions of 0 .. largest, uniformly sampled.

    A model trained on them sees every position up to ``largest``, for any length of its rows. ``generator`` makes them
    reproducible; ``batch`` rows are sampled independently.
    In evaluation, the authors sample positions in the same way, which makes the output random; in their code, the rows
    of a batch share one sample. For encodings of the distance (ALiBi, Transformer-XL) their code samples the distances,
    the same ones for every query, and not positions, whose differences these encodings see here.
    Source: Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers",
    arXiv:2305.16843, section 3; google-deepmind/randomized_positional_encodings, models/positional_encodings.py.
    """
    n, largest = _validate_count("n", n), _validate_count("largest", largest)
    if n > largest + 1:
        raise PositionError(f"n: expected at most {largest + 1} different positions up to {largest}, got {n}")
    if generator is not None and device is not None and generator.device.type != torch.device(device).type:
        raise PositionError(f"generator: expected device {device}, got {generator.device}")
    at = generator.device if device is None and generator is not None else device
    rows = [
        torch.randperm(largest + 1, generator=generator, device=at)[:n].sort().values
        for _ in range(1 if batch is None else _validate_count("batch", batch))
    ]
    if batch is None:
        return rows[0]
    return torch.stack(rows) if rows else torch.empty(0, n, dtype=torch.int64, device=at)


def self_extend(
    positions: Int[Tensor, "*batch token"], *, group: int, window: int
) -> tuple[Int[Tensor, "*batch token"], Int[Tensor, "*batch token"]]:
    """The positions of queries and of keys for distant pairs, where neighbours share a position.

        q = m // group + window - window // group        k = n // group

    A query at m and a key at n < m have the distance m - n within the window, and q - k beyond it, which is about
    window + (m - n - window) / group: a model trained on T positions covers (T - window) * group + window positions.
    The choice depends on the pair, so no single set of positions expresses it: compute scores with the original
    positions and with these, take the first where m - n < window, then apply the softmax. This holds for relative
    encodings and causal attention; cache keys before rotation.
    Source: Jin et al. 2024, "LLM Maybe LongLM: Self-Extend LLM Context Window Without Tuning", arXiv:2401.01325,
    section 3.3.
    """
    p = validate(positions)
    for name, value in (("group", group), ("window", window)):
        if _validate_count(name, value) < 1:
            raise PositionError(f"{name}: expected an integer, 1 or more, got {value!r}")
    grouped = p // group
    return grouped + (window - window // group), grouped


def grid(h: int, w: int, *, device: torch.device | str | None = None) -> Int[Tensor, "2 token"]:
    """The positions of h x w patches in raster order: axis 0 is the row (y), axis 1 the column (x)."""
    row, column = (arange(_validate_count(name, size), device=device) for name, size in (("h", h), ("w", w)))
    return torch.stack([row.repeat_interleave(w), column.repeat(h)])


def mrope(t: int, h: int, w: int, *, past: int = 0, device: torch.device | str | None = None) -> Int[Tensor, "3 token"]:
    """The (time, row, column) positions of t frames of h x w patches after ``past`` positions.

    Text has the same position on all three axes, ``offset(past, n).expand(3, n)``, and continues after an image at
    past + max(t, h, w).
    Source: Wang et al. 2024, "Qwen2-VL", arXiv:2409.12191, section 2.1.
    """
    time = arange(_validate_count("t", t), device=device).repeat_interleave(
        _validate_count("h", h) * _validate_count("w", w)
    )
    rows_and_columns = grid(h, w, device=device).repeat(1, t)
    return torch.cat([time.unsqueeze(0), rows_and_columns]) + _validate_count("past", past)


def validate(
    positions: Tensor,
    *,
    name: str = "positions",
    axes: int | None = None,
    batch: int | None = None,
    tokens: int | None = None,
    device: torch.device | None = None,
) -> Int[Tensor, "*axes_and_batch token"]:
    """Check that positions are non-negative integers of the expected shape; return them as int64.

    ``axes`` is the number of axes if there are several; ``batch``, ``tokens`` and ``device`` are checked if given.
    Values are checked only if that needs no device synchronisation (see `has_readable_values`). Raises `PositionError`.
    """
    if not isinstance(positions, Tensor):
        raise PositionError(f"{name}: expected a tensor of integers, got {_describe(positions)}; use positions.arange")
    if positions.dtype not in INTEGER_DTYPES:
        raise PositionError(f"{name}: expected an integer dtype, got {positions.dtype}; {_integer_advice(positions)}")
    shape = list(positions.shape)
    expected = "[token] or [batch, token]" if axes is None else f"[{axes}, token] or [{axes}, batch, token]"
    per_axis_shape = shape if axes is None else shape[1:]
    if len(per_axis_shape) not in (1, 2) or (axes is not None and shape[0] != axes):
        raise PositionError(f"{name}: expected shape {expected}, got {shape}")
    if tokens is not None and per_axis_shape[-1] != tokens:
        raise PositionError(f"{name}: expected {tokens} tokens, shape {expected}, got {shape}")
    if batch is not None and len(per_axis_shape) == 2 and per_axis_shape[0] not in (1, batch):
        raise PositionError(f"{name}: expected a batch of {batch} (or 1), shape {expected}, got {shape}")
    if device is not None and positions.device != device:
        raise PositionError(f"{name}: expected device {device}, got {positions.device}; move with .to('{device}')")
    positions = positions.long()
    stored = stored_values(positions)
    if has_readable_values(stored) and stored.numel() and int(stored.min()) < 0:
        raise PositionError(f"{name}: expected no negative position, got {int(stored.min())}")
    return positions


def _integer_advice(positions: Tensor) -> str:
    """The advice for positions that are not integers: a conversion must not change them."""
    if not positions.dtype.is_floating_point:
        return "convert with .long()"
    if not has_readable_values(positions):
        return "convert whole numbers with .long()"
    if bool((positions == positions.round()).all()):
        return "convert with .long()"
    return "fractions would be lost: multiply by their denominator, and slow a rotary encoding by LinearScaling"


_functorch = torch._C._functorch
_transforms = _functorch.peek_interpreter_stack
_value_checks = ContextVar("value_checks", default=True)


@contextmanager
def without_value_checks() -> Iterator[None]:
    """Skip the checks of values, which only raise errors, where tensors have no values to read."""
    token = _value_checks.set(False)
    try:
        yield
    finally:
        _value_checks.reset(token)


def has_readable_values(tensor: Tensor) -> bool:
    """True if values can be read without synchronisation.

    That is: on the CPU, not while tracing, not on fake tensors, and not inside torch.vmap, where a tensor stands for
    many (`stored_values` has all of them).
    """
    if torch.compiler.is_compiling() or not _value_checks.get():
        return False
    if _transforms() is not None and _is_mapped(tensor):
        return False
    return tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor)


def stored_values(tensor: Tensor) -> Tensor:
    """The tensor without the wrappers of torch.func, with the dimensions that torch.vmap hides."""
    if torch.compiler.is_compiling() or _transforms() is None:
        return tensor
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


def _is_mapped(tensor: Tensor) -> bool:
    """True for a tensor with a dimension that torch.vmap hides."""
    while _functorch.is_functorch_wrapped_tensor(tensor):
        if _functorch.is_batchedtensor(tensor):
            return True
        tensor = _functorch.get_unwrapped(tensor)
    return False


def _validate_count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | torch.SymInt) or value < 0:
        raise PositionError(f"{name}: expected an integer, 0 or more, got {value!r}")
    return cast("int", value)


def _is_integer_tensor(x: object, *, booleans: bool = False) -> bool:
    return isinstance(x, Tensor) and (x.dtype in INTEGER_DTYPES or (booleans and x.dtype == torch.bool))


def _describe(x: object) -> str:
    return f"{x.dtype} of shape {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
