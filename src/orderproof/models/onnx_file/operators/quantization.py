"""Numbers of eight and sixteen bits: a real number is an integer without its zero point, times a scale.

ONNX Runtime rounds halves to even and limits to the range of the integers. Products and convolutions of integers are
exact: those that torch has for real numbers only are computed in float64.
"""

from __future__ import annotations

import onnx
import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.operators.elementwise import DTYPES
from orderproof.models.onnx_file.operators.layers import convolved
from orderproof.models.onnx_file.values import Value

GREATEST = 255  # of eight bits


@operator("DynamicQuantizeLinear")
def dynamic_quantize(call: Operation) -> list[Value]:
    """Integers of eight bits, their scale and their zero."""
    return list(quantized_dynamically(call.tensor(0)))


def quantized_dynamically(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Integers from 0 to 255, their scale and their zero, such that all values and 0 are in range."""
    least, greatest = torch.clamp(x.amin(), max=0.0), torch.clamp(x.amax(), min=0.0)
    span = greatest - least
    scale = torch.where(span > 0, span / GREATEST, 1.0).to(x.dtype)
    zero = torch.clamp(torch.round(-least / scale), 0, GREATEST)
    found = torch.clamp(torch.round(x / scale) + zero, 0, GREATEST)
    return found.to(torch.uint8), scale, zero.to(torch.uint8)


@operator("QuantizeLinear")
def quantize(call: Operation) -> Value:
    """Integers of real numbers, with one scale for a tensor, for each entry of an axis, or for each block."""
    x, zero, kind = call.tensor(0), call.optional_tensor(2), call.attribute("output_dtype", 0)
    dtype = (
        zero.dtype if zero is not None else DTYPES.get(onnx.TensorProto.DataType.Name(kind)) if kind else torch.uint8
    )
    if dtype is None or dtype.is_floating_point:
        raise call.refuse("this type of numbers")
    scale, zero = _along(call, x, call.tensor(1)), None if zero is None else _along(call, x, zero)
    return quantized(x, scale, zero, dtype)


@operator("DequantizeLinear")
def dequantize(call: Operation) -> Value:
    """The real numbers of integers, with one scale for a tensor, for each entry of an axis, or for each block."""
    x, zero = call.tensor(0), call.optional_tensor(2)
    return dequantized(x, _along(call, x, call.tensor(1)), None if zero is None else _along(call, x, zero))


def quantized(x: Tensor, scale: Tensor, zero: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The nearest integers in the range of a dtype."""
    found, limits = torch.round(x / scale), torch.iinfo(dtype)
    found = found if zero is None else found + zero.to(found.dtype)
    return torch.clamp(found, limits.min, limits.max).to(dtype)


def dequantized(x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """The real numbers of integers."""
    real = x.to(scale.dtype)
    return (real if zero is None else real - zero.to(scale.dtype)) * scale


def _along(call: Operation, x: Tensor, values: Tensor) -> Tensor:
    """Scales or zeros in a shape that fits their tensor: they are for an axis, or for blocks of an axis."""
    if values.ndim == 0 or (values.ndim == 1 and values.numel() == 1):
        return values.reshape(())
    axis, block = call.attribute("axis", 1) % x.ndim, call.attribute("block_size", 0)
    if values.ndim == 1 and not block:
        return values.reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    if not block:
        raise call.refuse(f"scales of {values.ndim} axes without blocks")
    return values.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])


@operator("MatMulInteger")
def matmul_integer(call: Operation) -> Value:
    """A product of matrices of small integers, each without its zero."""
    return torch.matmul(_centred(call, 0, 2), _centred(call, 1, 3))


@operator("MatMulIntegerToFloat")
def matmul_to_float(call: Operation) -> Value:
    """A product of matrices of small integers as real numbers, plus a bias."""
    bias = call.optional_tensor(6)
    found = scaled(torch.matmul(_centred(call, 0, 4), _centred(call, 1, 5)), call.tensor(2), call.tensor(3))
    return found if bias is None else found + bias


def scaled(product: Tensor, a_scale: Tensor, b_scale: Tensor) -> Tensor:
    """The real numbers of a product of integers, which may be too large for numbers of sixteen bits before it."""
    wide = torch.promote_types(a_scale.dtype, torch.float32)
    return (product.to(wide) * (a_scale.to(wide) * b_scale.to(wide))).to(a_scale.dtype)


@operator("DynamicQuantizeMatMul")
def dynamic_matmul(call: Operation) -> Value:
    """The same, of a first matrix that is quantized here."""
    return product_of_real(call.tensor(0), call.tensor(1), call.tensor(2), *map(call.optional_tensor, (3, 4)))


def product_of_real(x: Tensor, weight: Tensor, scale: Tensor, zero: Tensor | None, bias: Tensor | None) -> Tensor:
    """The product of real numbers, which are quantized for it, with integers."""
    small, own_scale, own_zero = quantized_dynamically(x)
    product = torch.matmul(small.to(torch.int32) - own_zero.to(torch.int32), _without(weight, zero))
    found = product.to(x.dtype) * (own_scale * scale)
    return found if bias is None else found + bias


@operator("MatMulNBits")
def matmul_bits(call: Operation) -> Value:
    """A product with weights [column, block, byte] of four or eight bits, with a scale and a zero for each block."""
    bits, size, columns = call.attribute("bits", 4), call.attribute("K"), call.attribute("N")
    if bits not in (4, 8) or call.optional(4) is not None:
        raise call.refuse(f"{bits} bits, or an order of columns")
    blocks = -(-size // call.attribute("block_size"))
    zero, bias, scale = call.optional_tensor(3), call.optional_tensor(5), call.tensor(2).reshape(columns, blocks, 1)
    whole = numbers_of(call.tensor(1).reshape(columns, blocks, -1), bits).to(scale.dtype)
    if zero is None:
        whole = whole - 2 ** (bits - 1)
    elif zero.is_floating_point():
        whole = whole - zero.reshape(columns, blocks, 1)
    else:
        whole = whole - numbers_of(zero.reshape(columns, -1), bits)[:, :blocks, None].to(scale.dtype)
    return F.linear(call.tensor(0), (whole * scale).flatten(1)[:, :size], bias)


def numbers_of(packed: Tensor, bits: int) -> Tensor:
    """The numbers of bytes: one, or two with the lower half first."""
    return packed if bits == 8 else torch.stack([packed % 16, packed // 16], -1).flatten(-2)


@operator("QLinearMatMul")
def quantized_matmul(call: Operation) -> Value:
    """A product of quantized matrices, quantized."""
    wide = torch.promote_types(call.tensor(1).dtype, torch.float32)
    a, a_scale, b_scale, y_scale = _centred(call, 0, 2), *(call.tensor(place).to(wide) for place in (1, 4, 6))
    a_scale = a_scale.unsqueeze(-1) if a_scale.ndim == 1 and a_scale.numel() > 1 else a_scale
    product = torch.matmul(a, _centred(call, 3, 5)).to(wide)
    zero = call.tensor(7)
    return quantized(product * (a_scale * b_scale / y_scale), torch.ones_like(a_scale), zero, zero.dtype)


@operator("QGemm")
def quantized_gemm(call: Operation) -> Value:
    """A product of two quantized matrices and a bias of its scale, quantized if a scale of the result is given."""
    a, b = call.tensor(0), call.tensor(3)
    a, b = a.mT if call.attribute("transA", 0) else a, b.mT if call.attribute("transB", 0) else b
    a, b = _without(a, call.optional_tensor(2)), _without(b, call.optional_tensor(5))
    bias, scale, zero = call.optional_tensor(6), call.optional_tensor(7), call.optional_tensor(8)
    product = torch.matmul(a, b)
    product = product if bias is None else product + bias
    own: Tensor = call.tensor(1) * call.tensor(4) * call.attribute("alpha", 1.0)
    if scale is None:
        return product.to(own.dtype) * own
    return quantized(product.to(own.dtype) * (own / scale), torch.ones_like(scale), zero, call.tensor(0).dtype)


@operator("ConvInteger")
def conv_integer(call: Operation) -> Value:
    """A convolution of small integers, each without its zero."""
    return convolved(call, _centred(call, 0, 2).double(), _channels(call, 1, 3).double()).to(torch.int32)


@operator("QLinearConv")
def quantized_convolution(call: Operation) -> Value:
    """A convolution of quantized numbers, quantized; the bias has the scale of the products."""
    bias, scale, zero = call.optional_tensor(8), call.tensor(1), call.tensor(7)
    x, weight = _centred(call, 0, 2).double(), _channels(call, 3, 5).double()
    found = convolved(call, x, weight, None if bias is None else bias.double()).to(scale.dtype)
    ratio = (scale * call.tensor(4) / call.tensor(6)).reshape([1, -1, *[1] * (x.ndim - 2)])
    return quantized(found * ratio, torch.ones_like(scale), zero, zero.dtype)


@operator("QLinearAdd", "QLinearMul")
def quantized_binary(call: Operation) -> Value:
    """A sum or a product of quantized numbers, quantized."""
    a, b = (dequantized(call.tensor(k), call.tensor(k + 1), call.optional_tensor(k + 2)) for k in (0, 3))
    zero = call.optional_tensor(7)
    found = a + b if call.name == "QLinearAdd" else a * b
    return quantized(found, call.tensor(6), zero, call.tensor(0).dtype)


@operator("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
def quantized_activation(call: Operation) -> Value:
    """A function of quantized numbers, quantized."""
    x, zero = dequantized(call.tensor(0), call.tensor(1), call.optional_tensor(2)), call.optional_tensor(4)
    if call.name == "QLinearSoftmax":
        axis = call.attribute("axis", -1) % x.ndim
        if call.attribute("opset", 13) < 13 and axis != x.ndim - 1:
            raise call.refuse("several axes")
        found = torch.softmax(x, axis)
    else:
        found = torch.sigmoid(x) if call.name == "QLinearSigmoid" else F.leaky_relu(x, call.attribute("alpha", 0.01))
    return quantized(found, call.tensor(3), zero, call.tensor(0).dtype)


def integer_product(a: Tensor, b: Tensor, a_zero: Tensor | None, b_zero: Tensor | None) -> Tensor:
    """A product of matrices of integers, each without its zero."""
    return torch.matmul(_without(a, a_zero), _without(b, b_zero))


def _centred(call: Operation, place: int, zero_place: int) -> Tensor:
    """An input of integers without its zero: one, or one for each row of a first factor and column of a second."""
    zero = call.optional_tensor(zero_place)
    if zero is not None and place == 0 and zero.ndim == 1 and zero.numel() > 1:
        zero = zero.unsqueeze(-1)
    return _without(call.tensor(place), zero)


def _without(x: Tensor, zero: Tensor | None) -> Tensor:
    x = x.to(torch.int32)
    return x if zero is None else x - zero.to(torch.int32)


def _channels(call: Operation, place: int, zero_place: int) -> Tensor:
    """Weights of a convolution without their zero: one, or one for each channel."""
    x, zero = call.tensor(place), call.optional_tensor(zero_place)
    return _without(x, None if zero is None else zero.reshape([-1, *[1] * (x.ndim - 1)]))
