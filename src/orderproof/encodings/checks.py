"""Checks of tensors, sizes and positions, shared by encodings and blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch._C._functorch import TransformType
from torch.autograd import forward_ad

from orderproof.errors import EncodingError
from orderproof.positions import INTEGER_DTYPES, has_readable_values, stored_values
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Int, Shaped


def check_size(owner: str, name: str, value: object, *, even: bool = False) -> int:
    """Reject a size that is not a positive, and optionally even, integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or (even and value % 2):
        kind = "an even integer, 2 or more" if even else "an integer, 1 or more"
        raise EncodingError(f"{owner}: {name} must be {kind}, got {value!r}")
    return value


def describe_value(x: object) -> str:
    """A value in an error message: dtype and shape of a tensor, otherwise the type."""
    if isinstance(x, Tensor):
        return f"{x.dtype} {list(x.shape)}"
    return "none" if x is None else type(x).__name__


def is_floating(x: object, axes: int) -> bool:
    """True for a floating tensor with this number of dimensions."""
    return isinstance(x, Tensor) and x.is_floating_point() and x.dim() == axes


def is_integers(x: object) -> bool:
    """True for a tensor of integers."""
    return isinstance(x, Tensor) and x.dtype in INTEGER_DTYPES


def is_sequence_of_length(x: object, size: int) -> bool:
    """True for a tuple or list of this length."""
    return isinstance(x, tuple | list) and len(x) == size


def check_features(owner: str, x: Tensor, width: int) -> None:
    """Reject embeddings that are not floating [batch, token, width]."""
    if not is_floating(x, 3) or x.shape[-1] != width:
        raise EncodingError(f"{owner}: x must be floating [batch, token, {width}], got {describe_value(x)}")


def check_heads(owner: str, name: str, x: Tensor, head_width: int) -> None:
    """Reject queries or keys that are not floating [batch, head, token, head_width]."""
    if not is_floating(x, 4) or x.shape[-1] != head_width:
        raise EncodingError(
            f"{owner}: {name} must be floating [batch, head, token, {head_width}], got {describe_value(x)}"
        )


def assert_all(condition: Tensor, error: type[Exception], message: str) -> None:
    """Raise ``error`` unless all of ``condition`` is true. If values cannot be read now, torch asserts it later.

    While tracing, the assertion becomes part of the graph; on a GPU it fails asynchronously.
    """
    condition = stored_values(condition)
    if not has_readable_values(condition):
        torch._assert_async(condition.all(), message)
    elif not bool(condition.all()):
        raise error(message)


def check_max_position(positions: Int[Tensor, "*any"], last: int, message: str) -> None:
    """Reject positions above ``last``; {came} in ``message`` is replaced by the largest one if it can be read."""
    positions = stored_values(positions)
    if not has_readable_values(positions):
        torch._assert_async((positions <= last).all(), message.format(came="a larger one"))
    elif positions.numel() and (came := int(positions.max())) > last:
        raise EncodingError(message.format(came=came))


def check_flag(owner: str, name: str, value: object) -> bool:
    """Reject values other than True and False."""
    if not isinstance(value, bool):
        raise EncodingError(f"{owner}: {name} must be True or False, got {value!r}")
    return value


def check_dtype(owner: str, dtype: object) -> None:
    """Reject a dtype that is not floating."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise EncodingError(f"{owner}: dtype must be floating, such as torch.float32, got {dtype!r}")


def device_constant(
    numbers: Sequence[float], device: torch.device, *, dtype: torch.dtype = torch.float64
) -> Shaped[Tensor, " number"]:
    """Constants as a tensor on ``device``; copied to a GPU without synchronisation."""
    tensor = torch.tensor(numbers, dtype=dtype)
    return tensor.to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def working_dtype(x: Tensor) -> torch.dtype:
    """The dtype for computation before the final cast to the dtype of ``x``: float32, or float64 for float64."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def distances(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]
) -> Int[Tensor, "batch query key"]:
    """The distance k - q from each query to each key, as exact integers; the batch is 1 if there is none."""
    q, k = _rows(q_positions, k_positions)
    return k.unsqueeze(-2) - q.unsqueeze(-1)


def distance_at(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The same distance as a function of the indices (batch, query, key), without a matrix."""
    q, k = _rows(q_positions, k_positions)

    def distance(batch: Tensor, query: Tensor, key: Tensor) -> Tensor:
        q_row, k_row = (torch.zeros_like(batch) if len(rows) == 1 else batch for rows in (q, k))
        return k[k_row, key] - q[q_row, query]

    return distance


def _rows(q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
    q = validate_positions(q_positions, name="q_positions")
    rows = q.shape[0] if q.dim() == 2 and q.shape[0] != 1 else None
    k = validate_positions(k_positions, name="k_positions", batch=rows, device=q.device)
    return (q.unsqueeze(0) if q.dim() == 1 else q), (k.unsqueeze(0) if k.dim() == 1 else k)


def in_transform() -> bool:
    """True inside a transform of torch.func (grad, vmap, jvp, ...) and under forward-mode differentiation."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def is_mapped_gradient(gradient: Tensor) -> bool:
    """True for a gradient in a backward pass over several at once (``is_grads_batched``, ``vectorize=True``, vmap)."""
    return not torch._C._has_storage(gradient)


def needs_plain_derivatives() -> bool:
    """True inside a transform that needs more than first derivatives in reverse mode, which fused kernels lack."""
    if not in_transform():
        return False
    if forward_ad._current_level >= 0:
        return True
    kinds = [interpreter.key() for interpreter in torch._C._functorch.get_interpreter_stack() or ()]
    return TransformType.Jvp in kinds or kinds.count(TransformType.Grad) > 1


def autocast_disabled(x: Tensor) -> AbstractContextManager[object]:
    """A context in which autocast does not lower the precision of products on the device of ``x``."""
    kind = "cpu" if x.device.type == "meta" else x.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
