"""Operators that act on each element."""

from __future__ import annotations

import math
import operator as op
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import onnx
import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.values import Value, are_numbers, as_operands, as_tensor, each

TensorFunction = Callable[..., Tensor]
DTYPES = {
    "FLOAT": torch.float32, "DOUBLE": torch.float64, "FLOAT16": torch.float16, "BFLOAT16": torch.bfloat16,
    "INT8": torch.int8, "UINT8": torch.uint8, "INT16": torch.int16, "INT32": torch.int32, "INT64": torch.int64,
    "BOOL": torch.bool,
}  # fmt: skip

SELU = (1.67326319217681884765625, 1.05070102214813232421875)  # alpha and gamma

_UNARY: dict[str, TensorFunction] = {
    "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh, "Atan": torch.atan,
    "Atanh": torch.atanh, "Cos": torch.cos, "Cosh": torch.cosh,
    "Erf": torch.erf, "Exp": torch.exp, "HardSwish": F.hardswish, "IsNaN": torch.isnan, "Log": torch.log,
    "Mish": F.mish, "Reciprocal": torch.reciprocal, "Relu": torch.relu, "Round": torch.round,
    "Sigmoid": torch.sigmoid, "Sign": torch.sign, "Sin": torch.sin, "Sinh": torch.sinh, "Softplus": F.softplus,
    "Softsign": F.softsign, "Tan": torch.tan, "Tanh": torch.tanh, "BitwiseNot": torch.bitwise_not,
}  # fmt: skip
_UNARY_OF_NUMBERS: dict[str, tuple[TensorFunction, Callable[[Any], Any]]] = {
    "Abs": (torch.abs, abs), "Neg": (torch.neg, op.neg), "Not": (torch.logical_not, op.not_),
    "Sqrt": (torch.sqrt, lambda x: x**0.5), "Floor": (torch.floor, math.floor), "Ceil": (torch.ceil, math.ceil),
}  # fmt: skip


def _quotient(a: Any, b: Any) -> Any:
    """A division that truncates integers, as ONNX does."""
    real = any(x.is_floating_point() if isinstance(x, Tensor) else isinstance(x, float) for x in (a, b))
    if real:
        return a / b
    if type(a) is int and type(b) is int:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return a // b if b > 0 else -(a // -b)  # of sizes, which are not negative
    return torch.div(torch.as_tensor(a), torch.as_tensor(b), rounding_mode="trunc")


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": op.add, "Sub": op.sub, "Mul": op.mul, "Div": _quotient, "Pow": op.pow, "Equal": op.eq, "Greater": op.gt,
    "GreaterOrEqual": op.ge, "Less": op.lt, "LessOrEqual": op.le, "And": op.and_, "Or": op.or_, "Xor": op.xor,
    "BitwiseAnd": op.and_, "BitwiseOr": op.or_, "BitwiseXor": op.xor,
}  # fmt: skip


@operator(*_UNARY)
def unary(call: Operation) -> Value:
    """A function of one tensor."""
    return _UNARY[call.name](call.tensor(0))


@operator(*_UNARY_OF_NUMBERS)
def unary_of_numbers(call: Operation) -> Value:
    """A function of one tensor or of numbers."""
    of_tensor, of_number = _UNARY_OF_NUMBERS[call.name]
    x = call.value(0)
    return of_tensor(x) if isinstance(x, Tensor) else each(of_number, x)


@operator(*_BINARY)
def binary(call: Operation) -> Value:
    """A function of two values."""
    a, b = call.value(0), call.value(1)
    if are_numbers(a, b):
        return each(_BINARY[call.name], a, b)  # type: ignore[arg-type]
    if call.name == "Pow":  # the exponent may have another dtype; the result has that of the base
        return torch.pow(*as_operands(a, b)).to(as_tensor(a).dtype)
    found: Tensor = _BINARY[call.name](*as_operands(a, b))
    return found


@operator("Mod")
def mod(call: Operation) -> Value:
    """The remainder, with the sign of the divisor, or of the dividend if `fmod` is set."""
    a, b = call.value(0), call.value(1)
    if are_numbers(a, b) and not call.attribute("fmod", 0):
        return each(op.mod, a, b)  # type: ignore[arg-type]
    return (torch.fmod if call.attribute("fmod", 0) else torch.remainder)(*map(as_tensor, (a, b)))


@operator("Max", "Min", "Sum", "Mean")
def of_several(call: Operation) -> Value:
    """The largest, smallest, sum or mean of several tensors at each place."""
    values = [x for x in call.inputs if x is not None]
    if len(values) == 1:
        return values[0]
    if call.name in ("Max", "Min") and are_numbers(*values):
        return each(max if call.name == "Max" else min, *values)  # type: ignore[arg-type]
    functions: dict[str, TensorFunction] = {"Max": torch.maximum, "Min": torch.minimum}
    found = reduce(functions.get(call.name, torch.add), map(as_tensor, values))
    return found / len(values) if call.name == "Mean" else found


@operator("Where")
def where(call: Operation) -> Value:
    """One of two values at each place."""
    condition, yes, no = (call.value(place) for place in range(3))
    if are_numbers(condition, yes, no):
        return each(lambda c, y, n: y if c else n, condition, yes, no)  # type: ignore[arg-type]
    return torch.where(as_tensor(condition), as_tensor(yes), as_tensor(no))


@operator("Cast")
def cast(call: Operation) -> Value:
    """Another dtype. A cast to float32 is one to the dtype of the weights, which is float64 in a copy of the model."""
    dtype = DTYPES.get(onnx.TensorProto.DataType.Name(call.attribute("to")))
    if dtype is None:
        raise call.refuse("this type of numbers")
    x = call.value(0)
    if are_numbers(x) and not dtype.is_floating_point:
        return each(bool if dtype is torch.bool else (lambda n: int(n) if isinstance(n, float | bool) else n), x)  # type: ignore[arg-type]
    return as_tensor(x).to(call.real if dtype is torch.float32 else dtype)


@operator("CastLike")
def cast_like(call: Operation) -> Value:
    """The dtype of another tensor."""
    return call.tensor(0).to(call.tensor(1).dtype)


@operator("Identity", "Dropout")
def identity(call: Operation) -> list[Value]:
    """The value; dropout changes nothing outside training."""
    if call.optional(2) is not None and not (are_numbers(call.optional(2)) and call.value(2).item() is False):
        raise call.refuse("training, or with a flag for it that the file does not store")
    if call.name == "Dropout" and call.output_count > 1:
        return [call.value(0), torch.ones_like(call.tensor(0), dtype=torch.bool)]
    return [call.value(0)]


@operator("Clip")
def clip(call: Operation) -> Value:
    """Values between two limits."""
    limits = [call.attribute("min"), call.attribute("max")]
    for place in (1, 2):
        if (limit := call.optional(place)) is not None:
            limits[place - 1] = limit.item() if are_numbers(limit) else limit
    if limits == [None, None]:
        return call.tensor(0)
    if all(isinstance(x, Tensor) or x is None for x in limits):
        return torch.clamp(call.tensor(0), limits[0], limits[1])
    return torch.clamp(call.tensor(0), *(x.item() if isinstance(x, Tensor) else x for x in limits))


@operator("Gelu", "FastGelu")
def gelu(call: Operation) -> Value:
    """GELU; `FastGelu` adds a bias first and is the approximation by tanh."""
    x, bias = call.tensor(0), call.optional_tensor(1)
    approximate = "tanh" if call.name == "FastGelu" else call.attribute("approximate", "none")
    return F.gelu(x if bias is None else x + bias, approximate=approximate)


@operator("BiasGelu")
def bias_gelu(call: Operation) -> Value:
    """GELU of a sum."""
    return F.gelu(call.tensor(0) + call.tensor(1))


@operator("LeakyRelu", "Elu", "HardSigmoid", "Selu", "Celu", "ThresholdedRelu", "Swish", "QuickGelu")
def activation(call: Operation) -> Value:
    """Activations with numbers."""
    x, alpha = call.tensor(0), call.attribute("alpha")
    if call.name == "HardSigmoid":
        return torch.clamp(x * (0.2 if alpha is None else alpha) + call.attribute("beta", 0.5), 0, 1)
    if call.name == "Selu":
        gamma, alpha = call.attribute("gamma", SELU[1]), SELU[0] if alpha is None else alpha
        return F.selu(x) if (alpha, gamma) == SELU else torch.where(x > 0, x, alpha * torch.expm1(x)) * gamma
    if call.name in ("Swish", "QuickGelu"):
        alpha = (1.702 if call.name == "QuickGelu" else 1.0) if alpha is None else alpha
        return x * torch.sigmoid(x if alpha == 1 else alpha * x)
    if call.name == "LeakyRelu":
        return F.leaky_relu(x, 0.01 if alpha is None else alpha)
    alpha = 1.0 if alpha is None else alpha
    functions: dict[str, TensorFunction] = {"Elu": F.elu, "Celu": F.celu}
    return functions[call.name](x, alpha) if call.name in functions else torch.where(x > alpha, x, 0)


@operator("SwiGLU")
def swiglu(call: Operation) -> Value:
    """A value times the Swish of its gate, which is the first input."""
    return as_tensor(activation(replace(call, name="Swish"))) * call.tensor(1)  # type: ignore[arg-type]


@operator("PRelu")
def prelu(call: Operation) -> Value:
    """A slope for negative numbers."""
    x, slope = call.tensor(0), call.tensor(1)
    return torch.where(x < 0, slope * x, x)


@operator("IsInf")
def is_inf(call: Operation) -> Value:
    """Elements that are infinite."""
    x = call.tensor(0)
    if call.attribute("detect_negative", 1) and call.attribute("detect_positive", 1):
        return torch.isinf(x)
    return torch.isposinf(x) if call.attribute("detect_positive", 1) else torch.isneginf(x)
