"""Writes through views: how a value that is written to a view changes the tensor it is a view of.

A view is an operator applied to its base. Reading the view after the base has changed applies the operator again; a
write to the view replaces a part of the base. Both give a graph without writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

_ATEN = torch.ops.aten
Emit = Callable[..., Any]  # (operator, *args): the node of the operator on nodes

_SAME_ELEMENTS = {
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "ravel",
    "_reshape_alias",
}  # fmt: skip


def write_to_base(
    emit: Emit, name: str, base: Any, shape: tuple[int, ...], value: Any, args: tuple[Any, ...], part: int
) -> Any:
    """The node of the base after a write of `value` to a view of it; None if this view has no rule here.

    Args:
        emit: Adds an operator to the graph.
        name: The view's operator, without overload: "select".
        base: The node of the base.
        shape: The shape of the base.
        value: The node of the written value, in the shape of the view.
        args: The arguments of the view's operator, without the base; all of them numbers.
        part: Which of the operator's results the view is.

    """
    dims = len(shape)
    if name in _SAME_ELEMENTS:
        return emit(_ATEN.reshape.default, value, list(shape))
    if name in ("transpose", "swapaxes", "swapdims"):
        return emit(_ATEN.transpose.int, value, *args)
    if name in ("t", "numpy_T", "mT", "adjoint"):
        return emit(_ATEN.transpose.int, value, -2, -1) if dims == 2 or name == "mT" else None
    if name == "permute":
        order = [d % dims for d in args[0]]
        return emit(_ATEN.permute.default, value, [order.index(d) for d in range(dims)])
    if name in ("movedim", "moveaxis"):
        return emit(_ATEN.movedim.intlist, value, *(_as_list(dim) for dim in reversed(args)))
    if name == "select":
        return emit(_ATEN.select_scatter.default, base, value, *args)
    if name == "slice":
        return emit(_ATEN.slice_scatter.default, base, value, *args)
    if name == "narrow":
        dim, start, length = args
        return emit(_ATEN.slice_scatter.default, base, value, dim, start, end_of_narrow(start, length))
    if name == "diagonal":
        return emit(_ATEN.diagonal_scatter.default, base, value, *args)
    if name == "unbind":
        return emit(_ATEN.select_scatter.default, base, value, args[0] if args else 0, part)
    if name in ("split", "split_with_sizes", "chunk", "unsafe_split", "unsafe_chunk", "tensor_split"):
        dim = args[1] if len(args) > 1 else 0
        sizes = [x.shape[dim] for x in _parts(name, shape, args)]
        start = sum(sizes[:part])
        return emit(_ATEN.slice_scatter.default, base, value, dim, start, start + sizes[part])
    return None


def end_of_narrow(start: int, length: int) -> int | None:
    """The end of a part as that of a slice; None for the end of the dimension."""
    return None if start < 0 and start + length == 0 else start + length


def positional_arguments(func: OpOverload, rest: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...] | None:
    """The arguments after the first by position, with defaults; None if they cannot be written so."""
    found: list[Any] = list(rest)
    for argument in func._schema.arguments[1 + len(rest) :]:
        if argument.name in options:
            found.append(options[argument.name])
        elif argument.has_default_value():
            found.append(argument.default_value)
        else:
            return None
    return tuple(found)


def _as_list(dim: int | list[int]) -> list[int]:
    return [dim] if isinstance(dim, int) else list(dim)


def _parts(name: str, shape: tuple[int, ...], args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    parts: tuple[Tensor, ...] = getattr(torch.empty(shape, device="meta"), name)(*args)
    return parts
