"""Movement, pooling and embeddings of quantized numbers give what ONNX Runtime gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orderproof.errors import SubjectError
from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.runtime import both_results, check_same
from tests.models.onnx_file.test_quantization import KINDS, MICROSOFT, Draw, Drawn, integers, scale


def _quantized(draw: Draw, kind: Any, *shape: int) -> list[Array | None]:
    return [integers(draw, kind, *shape), scale(draw), integers(draw, kind)]


def concat(draw: Draw) -> Drawn:
    """One part or more, also empty ones."""
    kind, axis, parts = draw.choice(KINDS), int(draw.integers(-2, 2)), []
    for size in draw.integers(0, 4, int(draw.integers(1, 4))):
        shape = [2, 3]
        shape[axis] = int(size)
        parts += _quantized(draw, kind, *shape)
    return [scale(draw), integers(draw, kind), *parts], {"axis": axis}


def where(draw: Draw) -> Drawn:
    """Values that are broadcast."""
    kind = draw.choice(KINDS)
    parts = [*_quantized(draw, kind, 2, 3), *_quantized(draw, kind, 3), scale(draw), integers(draw, kind)]
    return [draw.integers(0, 2, (2, 3)).astype(bool), *parts], {}


def pool(draw: Draw, *, everywhere: bool) -> Drawn:
    """Windows with and without padding, and channels in the middle or last."""
    kind, last, rank = draw.choice(KINDS), int(draw.integers(2)), int(draw.integers(1, 3))
    sizes = [int(n) for n in draw.integers(4, 8, rank)]
    shape = (2, *sizes, 3) if last else (2, 3, *sizes)
    arrays = [*_quantized(draw, kind, *shape), scale(draw), integers(draw, kind)]
    if everywhere:
        return arrays, {"channels_last": last}
    kernel, strides = ([int(n) for n in draw.integers(1, 4, rank)] for _ in range(2))
    attributes = {"kernel_shape": kernel, "strides": strides, "count_include_pad": int(draw.integers(2))}
    pads = [int(n > 1) * int(draw.integers(2)) for n in kernel]
    return arrays, {**attributes, "channels_last": last, "pads": pads * 2}


def embedding(draw: Draw) -> Drawn:
    """Tables of words, of places and perhaps of segments, and a mask."""
    kind, rows, tokens, width, segments = draw.choice(KINDS), 2, int(draw.integers(1, 6)), 4, bool(draw.integers(2))
    ids, kinds = (draw.integers(0, n, (rows, tokens)).astype(np.int32) for n in (9, 2))
    shapes = ((9, width), (7, width), (2, width) if segments else None, (width,), (width,))
    tables, scales, zeros = (
        [None if shape is None else make(shape) for shape in shapes]
        for make in (
            lambda shape: integers(draw, kind, *shape), lambda _: scale(draw), lambda _: integers(draw, kind),
        )
    )  # fmt: skip
    mask = (np.arange(tokens) < draw.integers(1, tokens + 1, (rows, 1))).astype(np.int32) if draw.integers(2) else None
    return [ids, kinds if segments else None, *tables, mask, *scales, *zeros], {"epsilon": 1e-5}


def gather(draw: Draw) -> Drawn:
    """Rows of a table whose bytes hold one number or two; also no row."""
    bits, block, rows = int(draw.choice([4, 8])), int(draw.choice([16, 32])), int(draw.integers(1, 9))
    width = int(draw.integers(1, 40)) * 8 // bits
    blocks = -(-width // block)
    zero = integers(draw, np.uint8, rows, -(-blocks * bits // 8)) if draw.integers(2) else None
    ids = draw.integers(0, rows, (2, int(draw.integers(4)))).astype(draw.choice([np.int32, np.int64]))
    attributes = {"bits": bits, "block_size": block, "quantize_axis": 1, "gather_axis": 0}
    return [integers(draw, np.uint8, rows, width * bits // 8), ids, scale(draw, rows, blocks), zero], attributes


OPERATORS: dict[str, tuple[Callable[[Draw], Drawn], tuple[int, ...]]] = {  # with the inputs that are not stored
    "QLinearConcat": (concat, (2,)),
    "QLinearWhere": (where, (0, 1, 4)),
    "QLinearAveragePool": (lambda draw: pool(draw, everywhere=False), (0,)),
    "QLinearGlobalAveragePool": (lambda draw: pool(draw, everywhere=True), (0,)),
    "QEmbedLayerNormalization": (embedding, (0, 1, 7)),
    "GatherBlockQuantized": (gather, (1,)),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("seed", range(12))
def test_a_quantized_layer_gives_what_the_runtime_gives(name: str, seed: int) -> None:
    draw, given = OPERATORS[name]
    arrays, attributes = draw(np.random.default_rng(seed))
    outputs = ("y", "count") if name == "QEmbedLayerNormalization" else ("y",)
    stored = [k for k in range(len(arrays)) if k not in given]
    check_same(both_results(name, arrays, attributes, domain=MICROSOFT, outputs=outputs, stored=stored))


def test_a_table_of_two_bits_is_refused() -> None:
    arrays, attributes = gather(np.random.default_rng(0))
    with pytest.raises(SubjectError, match="GatherBlockQuantized is not supported with 2 bits"):
        both_results("GatherBlockQuantized", arrays, {**attributes, "bits": 2}, domain=MICROSOFT)
