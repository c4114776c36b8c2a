"""Quantized operators give what ONNX Runtime gives, on random attributes and odd sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orderproof.errors import SubjectError
from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.runtime import both_results, check_same

Draw = np.random.Generator
Drawn = tuple[list[Array | None], dict[str, Any]]
MICROSOFT = "com.microsoft"
KINDS = (np.uint8, np.int8)


def integers(draw: Draw, kind: Any, *shape: int) -> Array:
    """Integers over the whole range of a dtype."""
    limits = np.iinfo(kind)
    return draw.integers(limits.min, limits.max + 1, shape).astype(kind)


def real(draw: Draw, *shape: int) -> Array:
    """Numbers from a normal distribution."""
    return draw.normal(size=shape).astype(np.float32)


def scale(draw: Draw, *shape: int) -> Array:
    """Positive scales."""
    return draw.uniform(0.01, 0.1, shape).astype(np.float32)


def dynamic(draw: Draw) -> Drawn:
    """Values of one sign or both; sometimes all are zero."""
    x = real(draw, 3, int(draw.integers(1, 8))) + np.float32(draw.integers(-3, 4))
    return [x * np.float32(draw.integers(0, 4) > 0)], {}


def linear(draw: Draw, *, back: bool) -> Drawn:
    """One scale, one for each entry of an axis, or one for each block."""
    kind, shape, axis = draw.choice(KINDS), (2, int(draw.integers(1, 6)), 6), int(draw.integers(-3, 3))
    form = draw.choice(["tensor", "axis", "block"])
    sizes = {"tensor": (), "axis": (shape[axis],), "block": shape[: axis % 3] + (-1,) + shape[axis % 3 + 1 :]}[form]
    attributes: dict[str, Any] = {} if form == "tensor" else {"axis": axis}
    if form == "block":
        attributes["block_size"] = block = int(draw.integers(1, shape[axis] + 1))
        sizes = tuple(-(-shape[axis] // block) if size < 0 else size for size in sizes)
    zero = integers(draw, kind, *sizes) if draw.integers(2) or not back or kind == np.int8 else None
    return [integers(draw, kind, *shape) if back else real(draw, *shape), scale(draw, *sizes), zero], attributes


def product(draw: Draw) -> Drawn:
    """Two factors of integers; the second has one zero, or one for each column."""
    a, b = integers(draw, np.uint8, 2, 3, 5), integers(draw, kind := draw.choice(KINDS), 5, width := 7)
    zeros = [integers(draw, np.uint8), integers(draw, kind, *((width,) if draw.integers(2) else ()))]
    return [a, b, *zeros[: int(draw.integers(3))]], {}


def product_to_float(draw: Draw) -> Drawn:
    """The same with scales and a bias."""
    (a, b, *_), _ = product(draw)
    assert a is not None
    assert b is not None
    wide = (7,) if draw.integers(2) else ()
    zeros = [integers(draw, np.uint8), integers(draw, b.dtype, *wide)]
    return [a, b, scale(draw), scale(draw, *wide), *zeros, real(draw, 7) if draw.integers(2) else None], {}


def product_of_real(draw: Draw) -> Drawn:
    """A factor that the operator quantizes."""
    (_, b, _, b_scale, _, b_zero, bias), _ = product_to_float(draw)
    return [real(draw, 2, 3, 5), b, b_scale, b_zero, bias], {}


def quantized_product(draw: Draw) -> Drawn:
    """Quantized factors and a quantized product."""
    kind, wide = draw.choice(KINDS), (4,) if draw.integers(2) else ()
    a, b = integers(draw, kind, 2, 3, 5), integers(draw, np.int8, 5, 4)
    factors = [a, scale(draw), integers(draw, kind), b, scale(draw, *wide), integers(draw, np.int8, *wide)]
    return [*factors, scale(draw) * 30, integers(draw, kind)], {}


def packed_product(draw: Draw) -> Drawn:
    """Weights of four or eight bits, two or one in a byte, with a scale and perhaps a zero for each block."""
    bits, block, columns = int(draw.choice([4, 8])), int(draw.choice([16, 32])), int(draw.integers(1, 6))
    size = int(draw.integers(1, 4)) * block - int(draw.integers(2)) * 3
    blocks = -(-size // block)
    weight = integers(draw, np.uint8, columns, blocks, block * bits // 8)
    zeros = [None, integers(draw, np.uint8, columns, -(-blocks * bits // 8)), real(draw, columns, blocks)]
    zero = zeros[draw.integers(3 if bits == 4 else 2)]  # the runtime has no real zeros of eight bits
    attributes = {"K": size, "N": columns, "bits": bits, "block_size": block}
    arrays = [real(draw, 2, 3, size), weight, scale(draw, columns, blocks), zero, None]
    return [*arrays, real(draw, columns) if draw.integers(2) else None], attributes


def _window(draw: Draw) -> dict[str, Any]:
    attributes = {"pads": draw.integers(0, 3, 2).tolist(), "strides": [int(draw.integers(1, 3))]}
    return attributes | {"dilations": [int(draw.integers(1, 3))], "group": int(draw.choice([1, 2]))}


def quantized_gemm(draw: Draw) -> Drawn:
    """Quantized factors that may be transposed, a bias, and a result that is quantized or not."""
    kind, wide = np.uint8, (4,) if draw.integers(2) else ()
    flips = {"transA": int(draw.integers(2)), "transB": int(draw.integers(2)), "alpha": float(draw.choice([1.0, 0.5]))}
    a = integers(draw, kind, *((5, 3) if flips["transA"] else (3, 5)))
    b = integers(draw, np.int8, *((4, 5) if flips["transB"] else (5, 4)))
    bias = draw.integers(-1000, 1000, 4).astype(np.int32) if draw.integers(2) else None
    own_zero = np.zeros(wide, np.int8) if wide else integers(draw, np.int8)
    arrays = [a, scale(draw), integers(draw, kind), b, scale(draw, *wide), own_zero, bias]
    return arrays + ([scale(draw) * 30, integers(draw, kind)] if draw.integers(2) else []), flips


def convolution(draw: Draw) -> Drawn:
    """A convolution of integers."""
    attributes, length = _window(draw), int(draw.integers(5, 10))
    x, weight = integers(draw, np.uint8, 2, 4, length), integers(draw, np.uint8, 6, 4 // attributes["group"], 3)
    return [x, weight, integers(draw, np.uint8), integers(draw, np.uint8)], attributes


def quantized_convolution(draw: Draw) -> Drawn:
    """A convolution of quantized numbers, with one scale or one for each channel."""
    (x, _, zero, _), attributes = convolution(draw)
    wide = (6,) if draw.integers(2) else ()
    weight = integers(draw, np.int8, 6, 4 // attributes["group"], 3)
    bias = draw.integers(-1000, 1000, 6).astype(np.int32) if draw.integers(2) else None
    scales = [scale(draw), scale(draw, *wide), scale(draw) * 50]
    own_zero = np.zeros(wide, np.int8)
    return [x, scales[0], zero, weight, scales[1], own_zero, scales[2], integers(draw, np.uint8), bias], attributes


def quantized_pair(draw: Draw) -> Drawn:
    """Two quantized tensors that are broadcast."""
    kind = draw.choice(KINDS)
    pairs = [[integers(draw, kind, *shape), scale(draw), integers(draw, kind)] for shape in ((2, 3, 5), (3, 1))]
    return [*pairs[0], *pairs[1], scale(draw) * 10, integers(draw, kind)], {}


def quantized_one(draw: Draw) -> Drawn:
    """One quantized tensor."""
    kind = draw.choice(KINDS)
    return [integers(draw, kind, 3, 7), scale(draw), integers(draw, kind), scale(draw), integers(draw, kind)], {}


def quantized_rows(draw: Draw) -> Drawn:
    """One quantized tensor and an axis."""
    kind, axis = draw.choice(KINDS), int(draw.integers(-3, 3))
    zero = np.array(np.iinfo(kind).min, kind)
    x = [integers(draw, kind, 2, 3, 5), scale(draw), integers(draw, kind)]
    return [*x, np.array(1 / 256, np.float32), zero], {"axis": axis, "opset": 13}


OPERATORS: dict[tuple[str, str], Callable[[Draw], Drawn]] = {
    ("", "DynamicQuantizeLinear"): dynamic,
    ("", "QuantizeLinear"): lambda draw: linear(draw, back=False),
    ("", "DequantizeLinear"): lambda draw: linear(draw, back=True),
    ("", "MatMulInteger"): product,
    (MICROSOFT, "MatMulIntegerToFloat"): product_to_float,
    (MICROSOFT, "DynamicQuantizeMatMul"): product_of_real,
    (MICROSOFT, "MatMulNBits"): packed_product,
    ("", "QLinearMatMul"): quantized_product,
    (MICROSOFT, "QGemm"): quantized_gemm,
    ("", "ConvInteger"): convolution,
    ("", "QLinearConv"): quantized_convolution,
    (MICROSOFT, "QLinearAdd"): quantized_pair,
    (MICROSOFT, "QLinearMul"): quantized_pair,
    (MICROSOFT, "QLinearSigmoid"): quantized_one,
    (MICROSOFT, "QLinearLeakyRelu"): quantized_one,
    (MICROSOFT, "QLinearSoftmax"): quantized_rows,
}


@pytest.mark.parametrize(("domain", "name"), OPERATORS)
@pytest.mark.parametrize("seed", range(12))
def test_a_quantized_operator_gives_what_the_runtime_gives(domain: str, name: str, seed: int) -> None:
    arrays, attributes = OPERATORS[domain, name](np.random.default_rng(seed))
    outputs = ("y", "scale", "zero") if name == "DynamicQuantizeLinear" else ("y",)
    stored = range(1, len(arrays)) if name != "DynamicQuantizeLinear" else ()
    results = both_results(name, arrays, attributes, domain=domain, outputs=outputs, stored=stored)
    check_same(results, 2e-4 if name == "MatMulNBits" else 2e-5)  # weights up to 25, in sums of 96 terms


def test_scales_of_several_axes_without_blocks_are_refused() -> None:
    arrays = [np.ones((2, 3), np.uint8), np.ones((2, 3), np.float32)]
    with pytest.raises(SubjectError, match="DequantizeLinear is not supported with scales of 2 axes without blocks"):
        both_results("DequantizeLinear", arrays, {})
