"""Products, convolutions and functions of integers with a scale and a zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.sweep.draw import MICROSOFT, Call, Draw, drawn
from tests.models.onnx_file.sweep.drawn.layers import window

SMALL = ("int8", "uint8")


def zero(draw: Draw, *shape: int, of: str) -> Array:
    """A zero: one for a tensor is any number of its type, several are 0 as the runtime wants it."""
    return np.zeros(shape, draw.full(of=of).dtype) if shape else draw.full(of=of)


@drawn("DynamicQuantizeLinear")
def dynamic(draw: Draw) -> Call:
    """Values of one sign or both; perhaps all are zero."""
    x = draw.tensor(*draw.shape(), of="float") + np.float32(draw.number(-3, 3))
    x = np.asarray(x * np.float32(draw.number(0, 3) > 0), np.float32)
    return Call([x], outputs=("y", "scale", "zero"))


@drawn("QuantizeLinear", "DequantizeLinear", versions=(23, 19, 10))
def linear(draw: Draw) -> Call:
    """One scale, one for each entry of an axis, or one for each block."""
    shape, back = draw.shape(1), draw.name == "DequantizeLinear"
    axis, kinds = draw.axis(len(shape)), draw.kinds
    forms = ("tensor", "axis", "block") if draw.version >= 21 and all(shape) else ("tensor", "axis")
    form = draw.pick(*forms) if draw.version >= 13 else "tensor"
    attributes: dict[str, Any] = {} if form == "tensor" else {"axis": axis}
    sizes: tuple[int, ...] = (shape[axis],) if form == "axis" else ()
    if form == "block":
        attributes["block_size"] = block = draw.number(1, max(shape[axis], 1))
        sizes = (*shape[: axis % len(shape)], -(-shape[axis] // block), *shape[axis % len(shape) + 1 :])
    whole, real = ("T1", "T2") if back else ("T3" if "T3" in kinds else "T2", "T2" if "T3" in kinds else "float")
    if kinds.get(whole) == "int32":
        own: Array | None = np.zeros(sizes, np.int32)
    else:
        own = draw.full(*sizes, of=whole)
    if (back or kinds[whole] == "uint8") and draw.flag():
        own = None
    x = draw.full(*shape, of=whole) if back else draw.tensor(*shape, of="T1")
    scale = draw.scale(*sizes, of=real) if real in kinds else draw.scale(*sizes)
    return Call([x, scale, own], attributes, stored=draw.pick((1, 2), ()))


@drawn("MatMulInteger")
def product(draw: Draw) -> Call:
    """Two factors of integers; the second has one zero, or one for each column; the runtime leaves empty sums unset."""
    inner, width = draw.size(1), draw.size(1)
    a, b = draw.full(draw.size(), draw.size(), inner, of="T1"), draw.full(inner, width, of="T2")
    zeros = [draw.full(of="T1"), draw.full(*draw.pick((width,), ()), of="T2")]
    return Call([a, b, *zeros[: draw.number(0, 2)]], stored=draw.pick((1, 2, 3), ()))


@drawn("MatMulIntegerToFloat", domain=MICROSOFT, types={"T1": SMALL, "T2": SMALL, "T3": ("float", "float16")})
def product_to_float(draw: Draw) -> Call:
    """The same with scales and a bias."""
    inner, width = draw.size(1), draw.size(1)
    a, b, wide = (
        draw.full(draw.size(), draw.size(), inner, of="T1"),
        draw.full(inner, width, of="T2"),
        draw.pick((width,), ()),
    )
    scales = [draw.scale(of="T3"), draw.scale(*wide, of="T3")]
    zeros = [draw.full(of="T1"), draw.full(*wide, of="T2")]
    return Call([a, b, *scales, *zeros, draw.maybe(draw.tensor(width, of="T3"))], stored=draw.pick((1, 3, 5, 6), ()))


@drawn("DynamicQuantizeMatMul", domain=MICROSOFT, types={"T1": ("float",), "T2": SMALL})
def product_of_real(draw: Draw) -> Call:
    """A factor that the operator quantizes."""
    inner, width = draw.size(1), draw.size(1)
    wide = draw.pick((width,), ())
    b, own = draw.full(inner, width, of="T2"), draw.maybe(draw.full(*wide, of="T2"))
    arrays = [draw.tensor(draw.size(), draw.size(), inner, of="T1"), b, draw.scale(*wide), own]
    return Call([*arrays, draw.maybe(draw.tensor(width, of="T1"))], stored=(1, 2, 3, 4))


@drawn("QLinearMatMul", versions=(23, 10))
def quantized_product(draw: Draw) -> Call:
    """Quantized factors and a quantized product; the runtime leaves empty sums unset."""
    inner, width, real = draw.size(1), draw.size(1), draw.kinds.get("TS", "float")
    wide = draw.pick((width,), ())
    a, b = draw.full(draw.size(), draw.size(), inner, of="T1"), draw.full(inner, width, of="T2")
    factors = [a, draw.scale(of=real), draw.full(of="T1"), b, draw.scale(*wide, of=real), draw.full(*wide, of="T2")]
    large = (draw.scale(of=real) * np.asarray(30, draw.scale(of=real).dtype)).astype(draw.scale(of=real).dtype)
    return Call([*factors, large, draw.full(of="T3")], stored=range(1, 8))


@drawn(
    "MatMulNBits",
    domain=MICROSOFT,
    types={"T1": ("float", "float16"), "T2": ("uint8",), "T3": ("uint8", "float", "float16")},
)
def packed_product(draw: Draw) -> Call:
    """Weights of four or eight bits, two or one in a byte, with a scale and perhaps a zero for each block."""
    bits, block, columns = draw.pick(4, 8), draw.pick(16, 32), draw.size(1)
    size = draw.number(1, 3) * block - draw.flag() * 3
    blocks, real = -(-size // block), draw.kinds["T1"]
    weight = draw.full(columns, blocks, block * bits // 8, of="uint8")
    own: Array = draw.full(columns, -(-blocks * bits // 8), of="uint8")
    if draw.kinds["T3"] != "uint8":
        own = draw.tensor(columns, blocks, of="T3")
    attributes = {"K": size, "N": columns, "bits": bits, "block_size": block}
    arrays = [draw.tensor(draw.size(), draw.size(), size, of="T1"), weight, draw.scale(columns, blocks, of=real)]
    return Call(
        [*arrays, draw.maybe(own), None, draw.maybe(draw.tensor(columns, of="T1"))], attributes, stored=range(1, 6)
    )


@drawn("QGemm", domain=MICROSOFT, types={"T": ("float",), "TA": SMALL, "TB": SMALL, "TY": ("float", "int8", "uint8")})
def quantized_gemm(draw: Draw) -> Call:
    """Quantized factors that may be transposed, a bias, and a result that is quantized or not."""
    rows, inner, width = draw.size(1), draw.size(1), draw.size(1)
    wide, flips = draw.pick((width,), ()), {"transA": draw.flag(), "transB": draw.flag(), **draw.some(alpha=0.5)}
    a = draw.full(*((inner, rows) if flips["transA"] else (rows, inner)), of="TA")
    b = draw.full(*((width, inner) if flips["transB"] else (inner, width)), of="TB")
    bias = draw.maybe(draw.integers(-1000, 1000, width, kind="int32"))
    arrays = [a, draw.scale(), draw.full(of="TA"), b, draw.scale(*wide), zero(draw, *wide, of="TB"), bias]
    arrays += [] if draw.kinds["TY"] == "float" else [draw.scale() * np.float32(30), draw.full(of="TY")]
    return Call(arrays, flips, stored=range(1, len(arrays)))


@drawn("ConvInteger")
def convolution(draw: Draw) -> Call:
    """A convolution of integers."""
    rank, group = draw.number(1, 2), draw.pick(1, 3)
    attributes = {**window(draw, rank), "group": group}
    x = draw.full(draw.size(), 2 * group, *(max(draw.size(), 5) for _ in range(rank)), of="T1")
    weight = draw.full(2 * group, 2, *attributes["kernel_shape"], of="T2")
    zeros = [draw.full(of="T1"), draw.full(of="T2")]
    return Call([x, weight, *zeros[: draw.number(0, 2)]], attributes, stored=(1, 2, 3))


@drawn("QLinearConv")
def quantized_convolution(draw: Draw) -> Call:
    """A convolution of quantized numbers, with one scale or one for each channel."""
    (x, weight, *_), attributes = (call := convolution(draw)).arrays, dict(call.attributes)
    assert weight is not None
    wide = draw.pick((len(weight),), ())
    bias = draw.maybe(draw.integers(-1000, 1000, len(weight), kind="int32"))
    arrays = [x, draw.scale(), draw.full(of="T1"), weight, draw.scale(*wide), zero(draw, *wide, of="T2")]
    return Call([*arrays, draw.scale() * np.float32(50), draw.full(of="T3"), bias], attributes, stored=range(1, 9))


@drawn("QLinearAdd", "QLinearMul", domain=MICROSOFT, types={"T": SMALL})
def quantized_pair(draw: Draw) -> Call:
    """Two quantized tensors that broadcast."""
    shape, arrays = draw.shape(), []
    for _ in range(2):
        arrays += [draw.full(*draw.parts(shape)), draw.scale(), draw.full()]
    return Call(
        [*arrays, draw.scale() * np.float32(10), draw.full()], stored=draw.pick(range(1, 8), (1, 2, 4, 5, 6, 7))
    )


@drawn("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MICROSOFT, types={"T": SMALL})
def quantized_one(draw: Draw) -> Call:
    """One quantized tensor."""
    shape = draw.shape(1)
    arrays: list[Array] = [draw.full(*shape), draw.scale(), draw.full()]
    if draw.name != "QLinearSoftmax":
        attributes = draw.some(alpha=0.3) if draw.name == "QLinearLeakyRelu" else {}
        return Call([*arrays, draw.scale(), draw.full()], attributes, stored=range(1, 5))
    least = np.array(np.iinfo(arrays[0].dtype).min, arrays[0].dtype)
    attributes = {"axis": draw.axis(len(shape)), "opset": draw.pick(13, 13, 12)}
    return Call([*arrays, np.array(1 / 256, np.float32), least], attributes, stored=range(1, 5))
