"""Operators that read or write at indices, that sort, and that reduce axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.sweep.draw import Call, Draw, drawn


def indices(draw: Draw, size: int, *shape: int, of: str = "Tind") -> Array:
    """Places along an axis, also counted from the end; without entries for an axis without entries."""
    shape = shape if size else tuple(0 for _ in shape) or (0,)
    return draw.integers(-size, max(size - 1, -size), *shape, kind=draw.kinds.get(of, "int64"))


@drawn("Gather")
def gather(draw: Draw) -> Call:
    """Indices of any rank."""
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    index = indices(draw, shape[axis], *draw.shape(0, 2))
    return Call([draw.tensor(*shape), index], draw.pick({"axis": axis}), stored=draw.pick((), (1,)))


@drawn("GatherElements", "ScatterElements")
def elements(draw: Draw) -> Call:
    """As many indices as entries, or fewer; those that are written differ."""
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    small = [draw.number(0, n) for n in shape]
    attributes: dict[str, Any] = {"axis": axis}
    if draw.name == "GatherElements":
        small[axis] = draw.size() if shape[axis] else 0
        return Call([draw.tensor(*shape), indices(draw, shape[axis], *small)], attributes)
    order = np.argsort(
        draw.random.random([*small[: axis % len(shape)], shape[axis], *small[axis % len(shape) + 1 :]]), axis
    )
    index = order.take(range(small[axis]), axis).astype(indices(draw, 1, 1).dtype)
    how = draw.pick("none", "add", "mul", "max", "min")
    if how != "none":
        attributes["reduction"] = how
        index = indices(draw, shape[axis], *small) if shape[axis] else index
    return Call([draw.tensor(*shape), index, draw.tensor(*small)], attributes)


@drawn("GatherND", "ScatterND")
def tuples(draw: Draw) -> Call:
    """Tuples of indices of the first axes; those that are written differ, except in sums and products."""
    shape = tuple(max(n, 1) for n in draw.shape(1))
    batch = draw.number(0, 1) if draw.name == "GatherND" and len(shape) > 1 else 0
    depth = draw.number(1, len(shape) - batch)
    count = draw.size()
    index = np.stack([draw.random.integers(-n, n, (*shape[:batch], count)) for n in shape[batch : batch + depth]], -1)
    if draw.name == "GatherND":
        return Call([draw.tensor(*shape), index], draw.some(batch_dims=batch) if not batch else {"batch_dims": batch})
    how = draw.pick("none", "add", "mul", "max", "min")
    if how == "none":
        places = draw.random.permutation(int(np.prod(shape[:depth])))[:count]
        index = np.stack(np.unravel_index(places, shape[:depth]), -1)
    source = draw.tensor(len(index), *shape[depth:])
    return Call([draw.tensor(*shape), index, source], {} if how == "none" else {"reduction": how})


@drawn("ReverseSequence")
def reverse(draw: Draw) -> Call:
    """Rows of several lengths."""
    time, rows, axis = draw.size(1), draw.size(1), draw.flag()
    shape = ((time, rows), (rows, time))[axis] + draw.shape(0, 2)
    return Call([draw.tensor(*shape), draw.integers(0, time, rows)], {"time_axis": axis, "batch_axis": 1 - axis})


@drawn("TensorScatter", versions=(24,))
def cache_write(draw: Draw) -> Call:
    """No new token or as many as the cache holds, in the middle or over the end."""
    rank, size, rows = draw.number(2, 4), draw.size(1), draw.size()
    axis, count, circular = draw.number(1, rank - 1), draw.number(0, size), draw.flag()
    shape = [rows, *draw.shape(rank - 1, rank - 1)]
    shape[axis] = size
    other = list(shape)
    other[axis] = count
    first = draw.integers(0, size - 1 if circular else size - count, rows)
    attributes = {"axis": axis - rank * draw.flag(), "mode": ("linear", "circular")[circular]}
    return Call([draw.tensor(*shape), draw.tensor(*other), draw.maybe(first)], attributes)


@drawn("OneHot")
def one_hot(draw: Draw) -> Call:
    """Indices that may be negative or too large."""
    shape, count = draw.shape(1, 2), draw.pick(1, 3, 7)
    kind = draw.kinds["T1"]
    least = 0 if kind.startswith("u") else -count - 1
    index = draw.random.integers(least, count + 2, shape).astype(draw.tensor(of="T1").dtype)
    depth = np.array(count).astype(draw.tensor(of="T2").dtype)
    attributes = draw.some(axis=draw.axis(len(shape) + 1))
    return Call([index, depth, draw.tensor(2, of="T3")], attributes, stored=(1,))


@drawn("CumSum")
def cumsum(draw: Draw) -> Call:
    """From either end, with the own element or without."""
    shape = draw.shape(1)
    axis = np.array(draw.axis(len(shape))).astype(draw.tensor(of="T2").dtype)
    attributes = draw.some(exclusive=draw.flag(), reverse=draw.flag())
    return Call([draw.tensor(*shape), axis], attributes, stored=(1,))


@drawn("TopK", versions=(23, 10))
def top_k(draw: Draw) -> Call:
    """The largest or smallest entries; no two are equal, except in short integers."""
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    x = draw.random.permutation(int(np.prod(shape))).reshape(shape).astype(draw.tensor().dtype)
    attributes = {"axis": axis}
    if draw.version > 10:
        attributes |= draw.some(largest=draw.flag())
    return Call([x, np.array([draw.number(0, shape[axis])])], attributes, ("y", "place"), (1,))


@drawn("ArgMax", "ArgMin")
def arg_max(draw: Draw) -> Call:
    """The first or the last of equal entries."""
    shape = draw.shape(1)
    attributes = draw.some(axis=draw.axis(len(shape)), keepdims=draw.flag(), select_last_index=draw.flag())
    x = draw.random.integers(0, 3, shape) if draw.flag() else draw.tensor(*shape)
    return Call([x.astype(draw.tensor().dtype)], attributes)


@drawn(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", versions=(23, 11),
)  # fmt: skip
def reduction(draw: Draw) -> Call:
    """Some axes, all or none; before versions 13 and 18 they are an attribute."""
    shape = draw.shape(1)
    count = draw.number(0, len(shape))
    axes = [int(d) - len(shape) * draw.flag() for d in draw.random.permutation(len(shape))[:count]]
    attributes: dict[str, Any] = draw.some(keepdims=draw.flag())
    x = draw.tensor(*shape, positive=draw.name == "ReduceLogSum")
    if draw.version < 13:
        return Call([x], attributes | ({"axes": axes} if axes else {}))
    attributes |= draw.some(noop_with_empty_axes=draw.flag())
    given = None if not axes and draw.flag() else np.array(axes, np.int64)
    return Call([x, given], attributes, stored=draw.pick((1,), (0, 1)))
