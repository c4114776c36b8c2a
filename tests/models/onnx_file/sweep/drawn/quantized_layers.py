"""Movement, pooling, embeddings and attention of quantized numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.sweep.draw import MICROSOFT, Call, Draw, drawn
from tests.models.onnx_file.sweep.drawn.quantized import SMALL


def _quantized(draw: Draw, *shape: int) -> list[Array | None]:
    return [draw.full(*shape), draw.scale(), draw.full()]


@drawn("QLinearConcat", domain=MICROSOFT, types={"T": SMALL})
def concat(draw: Draw) -> Call:
    """One part or more, also empty ones."""
    shape, parts = list(draw.shape(1)), []
    axis = draw.axis(len(shape))
    for _ in range(draw.number(1, 3)):
        shape[axis] = draw.size()
        parts += _quantized(draw, *shape)
    stored = [k for k in range(2 + len(parts)) if k not in range(2, 2 + len(parts), 3)]
    return Call([draw.scale(), draw.full(), *parts], {"axis": axis}, stored=stored)


@drawn("QLinearWhere", domain=MICROSOFT, types={"T": SMALL})
def where(draw: Draw) -> Call:
    """Values and a condition that broadcast."""
    shape = draw.shape()
    parts = [*_quantized(draw, *draw.parts(shape)), *_quantized(draw, *draw.parts(shape)), draw.scale(), draw.full()]
    return Call([draw.tensor(*draw.parts(shape), of="bool"), *parts], stored=(2, 3, 5, 6, 7, 8))


@drawn("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT, types={"T": SMALL})
def pool(draw: Draw) -> Call:
    """Windows with and without padding, and channels in the middle or last."""
    last, rank = draw.flag(), draw.number(1, 2)
    sizes = [max(draw.size(), 4) for _ in range(rank)]
    rows, channels = draw.size(), draw.size(1)
    arrays = [
        *_quantized(draw, *((rows, *sizes, channels) if last else (rows, channels, *sizes))),
        draw.scale(),
        draw.full(),
    ]
    if draw.name == "QLinearGlobalAveragePool":
        return Call(arrays, {"channels_last": last}, stored=range(1, 5))
    kernel = [draw.number(1, 3) for _ in sizes]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": [draw.number(1, 3) for _ in sizes]}
    pads = [int(n > 1) * draw.flag() for n in kernel]
    attributes |= {"pads": pads * 2, "count_include_pad": draw.flag(), "channels_last": last}
    return Call(arrays, attributes, stored=range(1, 5))


@drawn("QEmbedLayerNormalization", domain=MICROSOFT, types={"T1": ("int32",), "T2": SMALL})
def embedding(draw: Draw) -> Call:
    """Tables of words, of places and perhaps of segments, and a mask."""
    rows, tokens, width, segments = draw.size(), draw.size(), draw.size(1), draw.flag()
    ids, kinds = (draw.integers(0, n - 1, rows, tokens, kind="int32") for n in (9, 2))
    shapes = [(9, width), (7, width), (2, width) if segments else None, (width,), (width,)]
    tables = [None if shape is None else draw.full(*shape, of="T2") for shape in shapes]
    scales = [None if shape is None else draw.scale() for shape in shapes]
    zeros = [None if shape is None else draw.full(of="T2") for shape in shapes]
    mask = draw.maybe((np.arange(tokens) < draw.random.integers(0, tokens + 1, (rows, 1))).astype(np.int32))
    arrays = [ids, kinds if segments else None, *tables, mask, *scales, *zeros]
    stored = [k for k in range(len(arrays)) if k not in (0, 1, 7)]
    return Call(arrays, {"epsilon": 1e-5}, ("y", "count"), stored)


@drawn(
    "GatherBlockQuantized", domain=MICROSOFT,
    types={"T1": ("uint8",), "T2": ("float", "float16", "bfloat16"), "Tind": ("int32", "int64")},
)  # fmt: skip
def gather(draw: Draw) -> Call:
    """Rows of a table whose bytes hold one number or two; also no row."""
    bits, block, rows = draw.pick(4, 8), draw.pick(16, 32), draw.size(1)
    width = draw.number(1, 39) * 8 // bits
    blocks = -(-width // block)
    own = draw.maybe(draw.full(rows, -(-blocks * bits // 8), of="uint8"))
    ids = draw.integers(0, rows - 1, 2, draw.size(), kind=draw.kinds["Tind"])
    attributes = {"bits": bits, "block_size": block, "quantize_axis": 1, "gather_axis": 0}
    return Call(
        [draw.full(rows, width * bits // 8, of="uint8"), ids, draw.scale(rows, blocks, of="T2"), own],
        attributes,
        stored=(0, 2, 3),
    )


@drawn(
    "QAttention", domain=MICROSOFT,
    types={"T1": SMALL, "T2": SMALL, "T3": ("float", "float16"), "T4": ("int32",)},
)  # fmt: skip
def attention(draw: Draw) -> Call:
    """Projections of integers, with one scale or one for each column, a mask and a cache."""
    tokens, past, heads, width, inner = draw.size(1), draw.size(1), 2, draw.size(1), draw.size(1)
    rows, cache = draw.size(1), draw.flag()
    total, columns = tokens + past * cache, 3 * heads * width
    wide = draw.pick((columns,), ())
    lengths = draw.random.integers(1, total + 1, rows)
    mask = draw.pick(None, lengths, np.arange(total) < lengths[:, None])
    scales = [
        np.asarray(draw.scale(of="T3") / 5, draw.scale(of="T3").dtype),
        np.asarray(draw.scale(*wide, of="T3") / 5, draw.scale(of="T3").dtype),
    ]
    arrays = [
        draw.full(rows, tokens, inner, of="T1"),
        draw.full(inner, columns, of="T2"),
        draw.tensor(columns, of="T3"),
        *scales,
    ]
    arrays += [
        None if mask is None else mask.astype(np.int32),
        draw.maybe(draw.full(of="T1")),
        draw.maybe(draw.full(*wide, of="T2")),
    ]
    arrays += [draw.tensor(2, rows, heads, past, width, of="T3") if cache else None]
    attributes = {"num_heads": heads, "unidirectional": draw.flag(), **draw.some(scale=0.3)}
    return Call(arrays, attributes, ("y", "present") if cache else ("y",), draw.pick((), (1, 2, 3, 4, 6, 7)))
