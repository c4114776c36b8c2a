"""Gather and scatter, with JAX's modes for indices that are out of range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.jax_function.operators.movement import clamped, with_axes
from orderproof.models.jax_function.primitive import Primitive, Value, primitive

_REDUCTIONS = {
    f"scatter{sign}{name}": how
    for sign in "-_"
    for name, how in {"add": "sum", "sub": "sum", "mul": "prod", "min": "amin", "max": "amax"}.items()
}


@primitive("gather")
def gather(call: Primitive) -> Value:
    """Parts of a tensor, each at a tuple of indices.

    With mode `clip` a start is moved so that the part is inside; with `fill` a part that is not inside is filled. Where
    it is filled with NaN the part counts as inside: claims are about calls whose numbers are finite.
    """
    x, index = call.tensor(0), call.tensor(1)
    numbers, sizes = call.param("dimension_numbers"), list(call.param("slice_sizes"))
    fills = "FILL" in str(call.param("mode"))
    places = [int(d) for d in numbers["start_index_map"]]
    limits = [x.shape[d] - sizes[d] for d in places]
    row = _rows(call, x, index, numbers, sizes)
    row = _along_axis(x, index, numbers, sizes) if row is None else row
    starts = [clamped(index[..., k], limit) for k, limit in enumerate(limits)]
    found = row if row is not None else x[tuple(_indices(x, starts, numbers, sizes, index))]
    value = _fill(call, found)
    if not fills or value != value:
        return found
    return torch.where(_inside(index, limits, [int(d) for d in numbers["offset_dims"]]), found, value)


def _rows(call: Primitive, x: Tensor, index: Tensor, numbers: Any, sizes: Sequence[Any]) -> Tensor | None:
    """The rows of a table, or entries of one axis: the usual forms, for which torch has operators."""
    places = [int(d) for d in numbers["start_index_map"]]
    collapsed = [int(d) for d in numbers["collapsed_slice_dims"]]
    if len(places) != 1 or collapsed != places or numbers.get("operand_batching_dims"):
        return None
    (axis,) = places
    ids = clamped(index[..., 0], x.shape[axis] - 1)
    offsets = [int(d) for d in numbers["offset_dims"]]
    if any(not _equal(sizes[d], x.shape[d]) for d in range(x.ndim) if d != axis):
        return None
    if offsets != [*range(axis), *range(axis + ids.ndim, axis + ids.ndim + x.ndim - axis - 1)]:
        return None
    if axis == 0 and x.ndim == 2 and x.is_floating_point():
        return F.embedding(ids, x)
    found = x.index_select(axis, ids.reshape(-1))
    return found.reshape([*x.shape[:axis], *ids.shape, *x.shape[axis + 1 :]])


def _along_axis(x: Tensor, index: Tensor, numbers: Any, sizes: Sequence[Any]) -> Tensor | None:
    """Entries of one axis, each at an index of its own: what `take_along_axis` is, also for vectors of entries."""
    places, offsets = [int(d) for d in numbers["start_index_map"]], [int(d) for d in numbers["offset_dims"]]
    own = [int(d) for d in numbers.get("operand_batching_dims") or []]
    theirs = [int(d) for d in numbers.get("start_indices_batching_dims") or []]
    others = [d for d in range(index.ndim - 1) if d not in theirs]
    if not own or len(places) != 1 or [int(d) for d in numbers["collapsed_slice_dims"]] != places or len(others) != 1:
        return None
    (axis,), whole = places, [d for d in range(x.ndim) if d not in (*own, *places)]
    if any(not _equal(sizes[d], x.shape[d]) for d in whole):
        return None
    at = dict(zip([*own, axis], [*theirs, *others], strict=True))  # the axis of the indices for one of the tensor
    ids = clamped(index[..., 0], x.shape[axis] - 1).permute([at[d] for d in range(x.ndim) if d in at])
    ids = with_axes(ids, whole)
    found = torch.gather(x, axis, ids.expand([x.shape[d] if d in whole else ids.shape[d] for d in range(x.ndim)]))
    batch = [d for d in range(x.ndim) if d not in offsets]  # the axes of the result that are those of the indices
    order = {**{batch[at[d]]: d for d in at}, **dict(zip(offsets, whole, strict=True))}
    return found.permute([order[k] for k in range(x.ndim)])


def _equal(a: Any, b: Any) -> bool:
    return a is b or a == b


def _indices(x: Tensor, starts: Sequence[Tensor], numbers: Any, sizes: Sequence[Any], index: Tensor) -> list[Tensor]:
    """For each axis of a tensor, the index of every element of the result."""
    offsets = [int(d) for d in numbers["offset_dims"]]
    places = [int(d) for d in numbers["start_index_map"]]
    own = [int(d) for d in numbers.get("operand_batching_dims") or []]
    theirs = [int(d) for d in numbers.get("start_indices_batching_dims") or []]
    dropped = {*map(int, numbers["collapsed_slice_dims"]), *own}
    rank = index.ndim - 1 + len(offsets)
    windows = iter(offsets)
    found = []
    for d in range(x.ndim):
        at = torch.zeros([1] * rank, dtype=torch.int64)
        if d not in dropped:
            at = at + _along(sizes[d], next(windows), rank)
        if d in places:
            at = at + with_axes(starts[places.index(d)], offsets)
        if d in own:
            batch = [k for k in range(rank) if k not in offsets]
            at = at + _along(x.shape[d], batch[theirs[own.index(d)]], rank)
        found.append(at)
    return found


def _along(size: Any, axis: int, rank: int) -> Tensor:
    return torch.arange(size, dtype=torch.int64).reshape([-1 if k == axis else 1 for k in range(rank)])


def _inside(index: Tensor, limits: Sequence[Any], windows: Sequence[int]) -> Tensor:
    """True where all starts of a part are in its range, with axes of size one for those of the parts."""
    inside = torch.ones(index.shape[:-1], dtype=torch.bool)
    for k, limit in enumerate(limits):
        inside = inside & (index[..., k] >= 0) & (index[..., k] <= limit)
    return with_axes(inside, list(windows))


def _fill(call: Primitive, found: Tensor) -> Any:
    value = call.param("fill_value")
    if value is not None:
        return value
    if found.dtype is torch.bool:
        return True
    if found.is_floating_point():
        return float("nan")
    limits = torch.iinfo(found.dtype)
    return limits.min if limits.min < 0 else limits.max


@primitive("scatter", *_REDUCTIONS)
def scatter(call: Primitive) -> Value:
    """A copy with parts replaced, added to, multiplied or compared, each at a tuple of indices.

    With mode `clip` a start is moved so that the part is inside; else a part that is not inside changes nothing.
    """
    x, index, update = call.tensors()
    numbers = call.param("dimension_numbers")
    windows = [int(d) for d in numbers["update_window_dims"]]
    dropped = [int(d) for d in numbers["inserted_window_dims"]]
    own = [int(d) for d in numbers.get("operand_batching_dims") or []]
    kept = [d for d in range(x.ndim) if d not in (*dropped, *own)]
    sizes = [1] * x.ndim
    for d, window in zip(kept, windows, strict=True):
        sizes[d] = update.shape[window]
    places = [int(d) for d in numbers["scatter_dims_to_operand_dims"]]
    limits = [x.shape[d] - sizes[d] for d in places]
    as_gather = {
        "offset_dims": windows, "collapsed_slice_dims": dropped, "start_index_map": places,
        "operand_batching_dims": own, "start_indices_batching_dims": numbers.get("scatter_indices_batching_dims"),
    }  # fmt: skip
    starts = [clamped(index[..., k], limit) for k, limit in enumerate(limits)]
    indices = _indices(x, starts, as_gather, sizes, index)
    at = [i.expand(update.shape) for i in indices]
    flat, step = torch.zeros((), dtype=torch.int64), 1
    for d in reversed(range(x.ndim)):
        flat = flat + at[d] * step
        step = step * x.shape[d]
    if "CLIP" not in str(call.param("mode")) and "PROMISE" not in str(call.param("mode")):
        flat = torch.where(_inside(index, limits, windows), flat, step)  # a place after the last one
    room = torch.cat([x.reshape(-1), torch.zeros(1, dtype=x.dtype)])
    flat, update = flat.reshape(-1), update.reshape(-1)
    if call.name == "scatter":
        found = room.scatter(0, flat, update)
    else:
        update = -update if call.name.endswith("sub") else update
        found = room.scatter_reduce(0, flat, update, _REDUCTIONS[call.name])
    return found[:-1].reshape(x.shape)
