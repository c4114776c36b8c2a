"""What encodings ask of the tensors and sizes they are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Int, Shaped


def check_size(owner: str, name: str, value: object, *, even: bool = False) -> int:
    """Refuse a size that is not a positive (and, where asked, even) integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or (even and value % 2):
        kind = "an even integer, 2 or more" if even else "an integer, 1 or more"
        raise EncodingError(f"{owner}: {name} must be {kind}, got {value!r}")
    return value


def kind_of(x: object) -> str:
    """What came, in an error: the dtype and shape of a tensor, the type of anything else."""
    if isinstance(x, Tensor):
        return f"{x.dtype} {list(x.shape)}"
    return "none" if x is None else type(x).__name__


def is_floating(x: object, axes: int) -> bool:
    """Whether ``x`` is a floating tensor of so many axes."""
    return isinstance(x, Tensor) and x.is_floating_point() and x.dim() == axes


def is_integers(x: object) -> bool:
    """Whether ``x`` is a tensor of integers."""
    return isinstance(x, Tensor) and x.dtype in place.INTEGERS


def is_row(x: object, size: int) -> bool:
    """Whether ``x`` is a tuple or list of so many things."""
    return isinstance(x, tuple | list) and len(x) == size


def check_features(owner: str, x: Tensor, width: int) -> None:
    """Refuse embeddings that are not floating [batch, token, width]."""
    if not is_floating(x, 3) or x.shape[-1] != width:
        raise EncodingError(f"{owner}: x must be floating [batch, token, {width}], got {kind_of(x)}")


def check_heads(owner: str, name: str, x: Tensor, head_width: int) -> None:
    """Refuse queries or keys that are not floating [batch, head, token, head_width]."""
    if not is_floating(x, 4) or x.shape[-1] != head_width:
        raise EncodingError(f"{owner}: {name} must be floating [batch, head, token, {head_width}], got {kind_of(x)}")


def demand(holds: Tensor, error: type[Exception], message: str) -> None:
    """Raise ``error`` unless all of ``holds`` is true; where values may not be looked at, torch asserts it later.

    While tracing the assertion becomes part of the graph, and on a GPU it stops the device.
    """
    if not place.readable(holds):
        torch._assert_async(holds.all(), message)
    elif not bool(holds.all()):
        raise error(message)


def check_most(positions: Int[Tensor, "*any"], last: int, refusal: str) -> None:
    """Refuse positions past ``last``; {came} in the refusal stands for the largest one, where it may be looked at."""
    if not place.readable(positions):
        torch._assert_async((positions <= last).all(), refusal.format(came="a larger one"))
    elif positions.numel() and (came := int(positions.max())) > last:
        raise EncodingError(refusal.format(came=came))


def check_flag(owner: str, name: str, value: object) -> bool:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise EncodingError(f"{owner}: {name} must be True or False, got {value!r}")
    return value


def check_dtype(owner: str, dtype: object) -> None:
    """Refuse a dtype that is not floating."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise EncodingError(f"{owner}: dtype must be floating, such as torch.float32, got {dtype!r}")


def constant(
    numbers: Sequence[float], device: torch.device, *, dtype: torch.dtype = torch.float64
) -> Shaped[Tensor, " number"]:
    """Numbers known beforehand, as a tensor on ``device``; on a GPU without waiting for what it has still to do."""
    made = torch.tensor(numbers, dtype=dtype)
    return made.to(device, non_blocking=True) if device.type == "cuda" else made.to(device)


def working_dtype(x: Tensor) -> torch.dtype:
    """The dtype to calculate in before the one cast to the dtype of ``x``: float32, or float64 for float64."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def distances(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]
) -> Int[Tensor, "batch query key"]:
    """How far each key stands after each query, k - q, as exact integers; the batch is 1 where there is none."""
    q, k = _rows(q_positions, k_positions)
    return k.unsqueeze(-2) - q.unsqueeze(-1)


def distance_at(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The same distance as a function of the indices (batch, query, key), holding no matrix."""
    q, k = _rows(q_positions, k_positions)

    def distance(batch: Tensor, query: Tensor, key: Tensor) -> Tensor:
        q_row, k_row = (torch.zeros_like(batch) if len(rows) == 1 else batch for rows in (q, k))
        return k[k_row, key] - q[q_row, query]

    return distance


def _rows(q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
    q = place.check(q_positions, name="q_positions")
    rows = q.shape[0] if q.dim() == 2 and q.shape[0] != 1 else None
    k = place.check(k_positions, name="k_positions", batch=rows, device=q.device)
    return (q.unsqueeze(0) if q.dim() == 1 else q), (k.unsqueeze(0) if k.dim() == 1 else k)


def exactly(x: Tensor) -> AbstractContextManager[object]:
    """A place where autocast does not lower the precision of products on the device of ``x``."""
    kind = "cpu" if x.device.type == "meta" else x.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
