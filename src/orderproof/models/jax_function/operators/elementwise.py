"""Primitives that act on each element, with JAX's integer division, casts and ties."""

from __future__ import annotations

import math
import operator as op
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from orderproof.models.jax_function.primitive import Primitive, Value, primitive

TensorFunction = Callable[..., Tensor]

_UNARY: dict[str, TensorFunction] = {
    "abs": torch.abs, "acos": torch.acos, "acosh": torch.acosh, "asin": torch.asin, "asinh": torch.asinh,
    "atan": torch.atan, "atanh": torch.atanh, "ceil": torch.ceil, "cos": torch.cos, "cosh": torch.cosh,
    "digamma": torch.digamma, "erf": torch.erf, "erf_inv": torch.erfinv, "erfc": torch.erfc, "exp": torch.exp,
    "exp2": torch.exp2, "expm1": torch.expm1, "floor": torch.floor, "is_finite": torch.isfinite,
    "lgamma": torch.lgamma, "log": torch.log, "log1p": torch.log1p, "logistic": torch.sigmoid, "neg": torch.neg,
    "rsqrt": torch.rsqrt, "sign": torch.sign, "sin": torch.sin, "sinh": torch.sinh, "sqrt": torch.sqrt,
    "square": torch.square, "tan": torch.tan, "tanh": torch.tanh,
}  # fmt: skip
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "abs": abs, "neg": op.neg, "square": lambda x: x * x, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
    "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "floor": math.floor, "ceil": math.ceil,
    "add": op.add, "sub": op.sub, "mul": op.mul, "eq": op.eq, "ne": op.ne, "lt": op.lt, "le": op.le, "gt": op.gt,
    "ge": op.ge, "max": max, "min": min, "pow": op.pow,
}  # fmt: skip
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": op.add, "add_any": op.add, "sub": op.sub, "mul": op.mul, "eq": op.eq, "ne": op.ne, "lt": op.lt,
    "le": op.le, "gt": op.gt, "ge": op.ge, "lt_to": op.lt, "le_to": op.le, "eq_to": op.eq, "pow": torch.pow,
    "and": op.and_, "or": op.or_, "xor": op.xor, "atan2": torch.atan2, "nextafter": torch.nextafter,
    "shift_left": op.lshift, "shift_right_arithmetic": op.rshift,
}  # fmt: skip


@primitive(*_UNARY)
def unary(call: Primitive) -> Value:
    """A function of one tensor."""
    if call.are_numbers and call.name in _OF_NUMBERS:
        return _OF_NUMBERS[call.name](call.inputs[0])
    return _UNARY[call.name](call.tensor(0))


@primitive(*_BINARY)
def binary(call: Primitive) -> Value:
    """A function of two values."""
    if call.are_numbers and call.name in _OF_NUMBERS:
        return _OF_NUMBERS[call.name](*call.inputs)
    if call.name in ("atan2", "nextafter", "and", "or", "xor"):
        return _BINARY[call.name](*call.tensors())
    return _BINARY[call.name](*call.operands())


@primitive("max", "min")
def extreme(call: Primitive) -> Value:
    """The larger or smaller of two values; NaN if one of them is."""
    a, b = call.inputs
    if call.are_numbers:
        return _OF_NUMBERS[call.name](a, b)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.maximum(a, b) if call.name == "max" else torch.minimum(a, b)
    x, number = (a, b) if isinstance(a, Tensor) else (b, a)
    if number == (-math.inf if call.name == "max" else math.inf):
        return x
    return torch.clamp(x, min=number) if call.name == "max" else torch.clamp(x, max=number)


@primitive("div")
def div(call: Primitive) -> Value:
    """A quotient. That of integers is rounded to zero, and -1 for a divisor of zero."""
    a, b = call.inputs
    if "float" in call.dtypes[0] or "complex" in call.dtypes[0]:
        return a / b if call.are_numbers and b else op.truediv(*call.operands())
    if call.are_numbers:
        return _truncated(a, b)
    if not isinstance(b, Tensor) and b != 0:
        return torch.div(a, b, rounding_mode="trunc")
    a, b = call.tensors()
    return torch.where(b == 0, -1, torch.div(a, torch.where(b == 0, 1, b), rounding_mode="trunc"))


@primitive("rem")
def rem(call: Primitive) -> Value:
    """The remainder, with the sign of the dividend; the dividend for an integer divisor of zero."""
    a, b = call.inputs
    if call.are_numbers:
        return math.fmod(a, b) if isinstance(a, float) else a - b * _truncated(a, b)
    if "float" in call.dtypes[0] or (not isinstance(b, Tensor) and b != 0):
        return torch.fmod(*call.operands())
    a, b = call.tensors()
    return torch.where(b == 0, a, torch.fmod(a, torch.where(b == 0, 1, b)))


def _truncated(a: Any, b: Any) -> Any:
    if b == 0:
        return -1
    return a // b if (a >= 0) == (b > 0) else -(-a // b)


@primitive("integer_pow")
def integer_pow(call: Primitive) -> Value:
    """A power with an exponent that is a number."""
    y = call.param("y")
    return call.inputs[0] ** y if call.are_numbers else torch.pow(call.tensor(0), y)


@primitive("cbrt")
def cbrt(call: Primitive) -> Value:
    """A cube root, also of negative numbers."""
    x = call.tensor(0)
    return torch.sign(x) * torch.pow(torch.abs(x), 1 / 3)


@primitive("round")
def round_(call: Primitive) -> Value:
    """The nearest integer: halves away from zero, or to the even one."""
    x, how = call.tensor(0), str(call.param("rounding_method"))
    if "EVEN" in how or how == "1":
        return torch.round(x)
    return torch.trunc(x + torch.copysign(torch.full_like(x, 0.5), x))


@primitive("not")
def not_(call: Primitive) -> Value:
    """Negation of booleans, or of the bits of integers."""
    if call.are_numbers and isinstance(call.inputs[0], bool):
        return not call.inputs[0]
    return torch.bitwise_not(call.tensor(0))


@primitive("select_n")
def select_n(call: Primitive) -> Value:
    """One of several values at each place."""
    which, *cases = call.inputs
    if not isinstance(which, Tensor):
        return cases[int(which)]
    places = range(1, len(cases) + 1)
    if call.input_dtypes[0] == "bool":
        if not any(isinstance(x, Tensor) for x in cases):
            return torch.where(which, call.tensor(2), call.tensor(1))
        return torch.where(which, cases[1], cases[0])
    found = call.tensor(1)
    for place in places[1:]:
        found = torch.where(which == place - 1, call.tensor(place), found)
    return found


@primitive("clamp")
def clamp(call: Primitive) -> Value:
    """Values between two limits, of which the upper one wins."""
    low, x, high = call.inputs
    if call.are_numbers:
        return min(max(x, low), high)
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        low, x, high = call.tensors()
        return torch.minimum(torch.maximum(x, low), high)
    return torch.clamp(call.tensor(1), low, high)


@primitive("convert_element_type")
def convert(call: Primitive) -> Value:
    """Another dtype. Numbers too large for integers become the largest one, and NaN zero."""
    x, name = call.inputs[0], str(call.param("new_dtype"))
    if not isinstance(x, Tensor):
        if name == "bool":
            return x != 0
        if "float" in name:
            return x if isinstance(x, torch.SymInt) else float(x)  # an open size stays a size
        return int(x) if isinstance(x, bool | float | torch.SymFloat) else x  # a part of a token is cut off
    return converted(x, call.dtype(name))


def converted(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor in another dtype, as XLA converts it."""
    if x.dtype is dtype:
        return x
    if dtype is torch.bool:
        return x != 0
    if x.is_complex() and not dtype.is_complex:
        return converted(torch.real(x), dtype)
    if x.is_floating_point() and not dtype.is_floating_point and not dtype.is_complex:
        limits = torch.iinfo(dtype)
        return torch.clamp(torch.nan_to_num(x.double(), nan=0.0), limits.min, limits.max).to(dtype)
    return x.to(dtype)


@primitive("reduce_precision")
def reduce_precision(call: Primitive) -> Value:
    """Rounded to the bits of a narrower type."""
    sizes = (call.param("exponent_bits"), call.param("mantissa_bits"))
    kinds = {(8, 23): torch.float32, (5, 10): torch.float16, (8, 7): torch.bfloat16}
    if sizes not in kinds:
        raise call.refuse(f"{sizes[0]} bits of exponent and {sizes[1]} of mantissa")
    x = call.tensor(0)
    return x if kinds[sizes] is torch.float32 else x.to(kinds[sizes]).to(x.dtype)


@primitive("copy", "copy_p", "stop_gradient", "optimization_barrier", "sharding_constraint", "pvary", "name",
           "device_put")  # fmt: skip
def same(call: Primitive) -> list[Value]:
    """The values."""
    return list(call.inputs)


@primitive("dim_as_value")
def dim_as_value(call: Primitive) -> Value:
    """A size as a number."""
    return call.param("dim")
