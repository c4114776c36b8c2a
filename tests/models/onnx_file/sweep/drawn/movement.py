"""Operators that move, cut and join elements, and those about shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from tests.models.onnx_file.sweep.draw import Call, Draw, drawn, numpy_type


@drawn("Shape", "Size")
def shape_of(draw: Draw) -> Call:
    """A part of the sizes, or all."""
    x = draw.tensor(*draw.shape())
    return Call([x], draw.some(start=draw.number(-4, 4), end=draw.number(-4, 4)) if draw.name == "Shape" else {})


@drawn("Reshape")
def reshape(draw: Draw) -> Call:
    """Joined and divided axes; 0 keeps a size or is one, and -1 is the rest."""
    shape = draw.shape(1)
    sizes = list(shape)
    attributes = draw.some(allowzero=draw.flag())
    if draw.flag():
        sizes = [*sizes[:-2], int(np.prod(sizes[-2:]))]
    elif draw.flag():
        sizes.insert(draw.number(0, len(sizes)), 1)
    if not attributes.get("allowzero") and draw.flag() and len(sizes) <= len(shape):
        sizes = [0 if n == m else n for n, m in zip(sizes, shape, strict=False)]
    elif 0 not in sizes and draw.flag():
        sizes[draw.number(0, len(sizes) - 1)] = -1
    return Call([draw.tensor(*shape), np.array(sizes)], attributes, stored=draw.pick((1,), (0, 1)))


@drawn("Flatten")
def flatten(draw: Draw) -> Call:
    """Axes before and after a place."""
    shape = draw.shape(1)
    return Call([draw.tensor(*shape)], draw.some(axis=draw.number(-len(shape), len(shape))))


@drawn("Transpose")
def transpose(draw: Draw) -> Call:
    """Some order of the axes, or the reverse one."""
    shape = draw.shape()
    order = [int(d) for d in draw.random.permutation(len(shape))]
    return Call([draw.tensor(*shape)], draw.some(perm=order) if shape else {}, stored=draw.pick((), (0,)))


@drawn("Squeeze", "Unsqueeze", versions=(23, 11))
def squeeze(draw: Draw) -> Call:
    """Axes of one entry; before version 13 they are an attribute."""
    shape = list(draw.shape(1, 2))
    rank = len(shape) + draw.number(1, 2)
    axes = sorted(int(d) for d in draw.random.permutation(rank)[: rank - len(shape)])
    if draw.name == "Squeeze":
        for d in axes:
            shape.insert(d, 1)
    axes = [d - rank * draw.flag() for d in axes]
    x = draw.tensor(*shape)
    if draw.version < 13:
        return Call([x], {"axes": axes})
    given = None if draw.name == "Squeeze" and draw.flag() else np.array(axes)
    return Call([x, given], stored=draw.pick((1,), (0, 1)))


@drawn("Concat")
def concat(draw: Draw) -> Call:
    """One tensor to three, also empty ones."""
    shape = list(draw.shape(1))
    axis, arrays = draw.axis(len(shape)), []
    for _ in range(draw.number(1, 3)):
        shape[axis] = draw.size()
        arrays.append(draw.tensor(*shape))
    return Call(arrays, {"axis": axis}, stored=draw.pick((), (0,), range(len(arrays))))


@drawn("Split", versions=(23, 13, 11))
def split(draw: Draw) -> Call:
    """Equal parts, also where they do not divide the axis, or sizes; before version 13 they are an attribute."""
    shape = draw.shape(1)
    axis, count = draw.axis(len(shape)), draw.number(1, 3)
    cuts = sorted(draw.number(0, shape[axis]) for _ in range(count - 1))
    sizes = np.diff([0, *cuts, shape[axis]])
    x, outputs = draw.tensor(*shape), tuple(f"y{k}" for k in range(count))
    if draw.version < 13:
        return Call([x], {"axis": axis, "split": sizes.tolist()}, outputs)
    if draw.version >= 18 and draw.flag() and shape[axis] >= count:
        return Call([x], {"axis": axis, "num_outputs": count}, outputs)
    return Call([x, sizes], {"axis": axis}, outputs, (1,))


@drawn("Slice", versions=(23, 9))
def slice_(draw: Draw) -> Call:
    """Starts and ends inside and outside, steps of both signs; before version 10 attributes, without steps."""
    shape = draw.shape(1)
    axes = [int(d) for d in draw.random.permutation(len(shape))[: draw.number(1, len(shape))]]
    starts, ends = ([draw.pick(-100, -2, -1, 0, 1, 2, 100, 2**62) for _ in axes] for _ in range(2))
    x = draw.tensor(*shape)
    if draw.version < 10:
        return Call([x], {"starts": starts, "ends": ends, "axes": axes})
    steps = [draw.pick(1, 1, 2, -1, -2) for _ in axes]
    kind = numpy_type(draw.kinds["Tind"])
    limit = np.iinfo(kind).max
    given: list[Any] = [np.array([min(n, limit) for n in y]).astype(kind) for y in (starts, ends, axes, steps)]
    if len(axes) == len(shape) and axes == sorted(axes) and draw.flag():
        given[2] = None
    given[3] = draw.maybe(given[3])
    return Call([x, *given], stored=draw.pick((1, 2, 3, 4), range(5)))


@drawn("Expand")
def expand(draw: Draw) -> Call:
    """Sizes that broadcast in both directions."""
    shape = draw.shape()
    return Call(
        [draw.tensor(*draw.parts(shape)), np.array(draw.parts(shape), np.int64)], stored=draw.pick((1,), (0, 1))
    )


@drawn("Tile")
def tile(draw: Draw) -> Call:
    """No repetition or several."""
    shape = draw.shape(1)
    return Call([draw.tensor(*shape), np.array([draw.number(0, 2) for _ in shape])], stored=(1,))


@drawn("Pad", versions=(23, 2))
def pad(draw: Draw) -> Call:
    """Every mode, a value, some axes, and negative widths, which cut."""
    shape = draw.shape(1)
    mode = draw.pick("constant", "constant", "edge", "reflect", "wrap") if draw.version > 18 else "constant"
    axes = draw.maybe(np.array([int(d) for d in draw.random.permutation(len(shape))[: draw.number(1, len(shape))]]))
    own = range(len(shape)) if axes is None or draw.version < 18 else axes.tolist()
    most = {"constant": lambda n: 2, "edge": lambda n: 2 * (n > 0), "reflect": lambda n: max(n - 1, 0)}
    limits = [min(most.get(mode, lambda n: n)(shape[d]), 2) for d in own]
    widths = [draw.number(-(n > 2) if mode == "constant" else 0, n) for n in limits * 2]
    if draw.version < 11:
        return Call([draw.tensor(*shape)], {"pads": widths, **draw.some(value=0.7)})
    value = draw.maybe(draw.tensor()) if mode == "constant" else None
    attributes = {} if mode == "constant" and draw.flag() else {"mode": mode}
    return Call([draw.tensor(*shape), np.array(widths), value, axes], attributes, stored=(1, 2, 3))


@drawn("Trilu")
def trilu(draw: Draw) -> Call:
    """Either triangle, with a diagonal or without."""
    diagonal = draw.maybe(np.array(draw.number(-3, 3)))
    return Call([draw.tensor(*draw.shape(2)), diagonal], draw.some(upper=draw.flag()), stored=(1,))


@drawn("Range")
def range_(draw: Draw) -> Call:
    """Numbers upward or downward, or none."""
    start, end, step = draw.pick((0, 7, 1), (1, 8, 3), (7, 0, -2), (3, 3, 1), (0, 7, 2), (5, 1, 1))
    arrays = [np.array(x).astype(draw.tensor().dtype) for x in (start, end, step)]
    return Call(arrays, stored=draw.pick((), (0, 1, 2), (0, 2)))


@drawn("ConstantOfShape")
def constant(draw: Draw) -> Call:
    """One number everywhere."""
    value = numpy_helper.from_array(draw.tensor(1, of="T2"))
    attributes = {"value": value} if draw.kinds["T2"] != "float" or draw.flag() else {}
    return Call([np.array(draw.shape(), np.int64)], attributes, stored=(0,))


@drawn("EyeLike")
def eye_like(draw: Draw) -> Call:
    """A diagonal, and perhaps another type."""
    x = draw.tensor(draw.size(), draw.size(), of="T1")
    return Call([x], draw.some(k=draw.number(-3, 3)))


@drawn("DepthToSpace", "SpaceToDepth")
def depth_to_space(draw: Draw) -> Call:
    """Blocks of one place or several."""
    block = draw.number(1, 3)
    rows, channels, high, wide = draw.size(), draw.size(), draw.size(), draw.size()
    attributes: dict[str, Any] = {"blocksize": block}
    if draw.name == "SpaceToDepth":
        return Call([draw.tensor(rows, channels, high * block, wide * block)], attributes)
    attributes |= draw.some(mode=draw.pick("DCR", "CRD"))
    return Call([draw.tensor(rows, channels * block * block, high, wide)], attributes)
