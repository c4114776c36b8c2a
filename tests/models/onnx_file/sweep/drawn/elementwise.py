"""Operators that act on each element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from tests.models.onnx_file.graphs import Array
from tests.models.onnx_file.sweep.draw import MICROSOFT, REAL, Call, Draw, drawn

HALF = ("float", "float16")


def held(draw: Draw, arrays: Sequence[Array | None]) -> Sequence[int]:
    """The places that the file stores: none, all, or one."""
    return draw.pick((), (), range(len(arrays)), (draw.number(0, len(arrays) - 1),))  # type: ignore[no-any-return]


@drawn(
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Cos", "Cosh", "Erf", "Exp",
    "Floor", "HardSwish", "IsNaN", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign",
    "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
)  # fmt: skip
def one(draw: Draw) -> Call:
    """One tensor."""
    of = "X" if "X" in draw.kinds else "T1" if "T1" in draw.kinds else "T"
    if draw.name == "Not":
        of = "bool"
    arrays = [draw.tensor(*draw.shape(), of=of, special=draw.name != "Sign")]  # whose NaN is 0 in torch
    return Call(arrays, stored=held(draw, arrays))


@drawn("Identity")
def identity(draw: Draw) -> Call:
    """One tensor."""
    arrays = [draw.tensor(*draw.shape(), of="V")]
    return Call(arrays, stored=held(draw, arrays))


@drawn("Dropout")
def dropout(draw: Draw) -> Call:
    """A ratio, no training, and perhaps the mask as an output."""
    ratio, training = draw.maybe(np.array(0.5, np.float32)), draw.maybe(np.array(False))
    x = draw.tensor(*draw.shape())
    return Call([x, ratio, training], outputs=draw.pick(("y",), ("y", "mask")), stored=(1, 2))


@drawn("Elu", "Celu", "HardSigmoid", "LeakyRelu", "Selu", "ThresholdedRelu")
def activation(draw: Draw) -> Call:
    """A function with numbers."""
    attributes = draw.some(alpha=float(draw.random.uniform(0.1, 2)))
    attributes |= draw.some(beta=0.3) if draw.name == "HardSigmoid" else {}
    attributes |= draw.some(gamma=1.3) if draw.name == "Selu" else {}
    return Call([draw.tensor(*draw.shape(), special=True)], attributes)


@drawn("Swish", versions=(24,))
@drawn("QuickGelu", domain=MICROSOFT, types={"T": REAL})
def swish(draw: Draw) -> Call:
    """A function with a number."""
    return Call([draw.tensor(*draw.shape())], draw.some(alpha=float(draw.random.uniform(0.5, 2))))


@drawn("Gelu")
def gelu(draw: Draw) -> Call:
    """Exact, or approximated."""
    return Call([draw.tensor(*draw.shape())], draw.some(approximate=draw.pick("none", "tanh")))


@drawn("Gelu", "FastGelu", "BiasGelu", domain=MICROSOFT, types={"T": REAL})
def gelu_of_sum(draw: Draw) -> Call:
    """A tensor, and a bias."""
    shape = (draw.size(), draw.size(), draw.size(1))
    bias = draw.tensor(shape[-1])
    bias = {"Gelu": None, "BiasGelu": bias}.get(draw.name, draw.maybe(bias))
    return Call([draw.tensor(*shape), bias])


@drawn("PRelu")
def prelu(draw: Draw) -> Call:
    """A slope that broadcasts."""
    shape = draw.shape(1)
    return Call([draw.tensor(*shape), draw.tensor(*draw.parts(shape))])


@drawn("IsInf")
def is_inf(draw: Draw) -> Call:
    """Both signs, or one."""
    attributes = draw.some(detect_negative=draw.flag(), detect_positive=draw.flag())
    return Call([draw.tensor(*draw.shape(), of="T1", special=True)], attributes)


@drawn(
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Mul", "Or", "Sub", "Xor",
)  # fmt: skip
def pair(draw: Draw) -> Call:
    """Two tensors that broadcast; no integer is divided by 0."""
    shape = draw.shape()
    arrays = [draw.tensor(*draw.parts(shape), special=True), draw.tensor(*draw.parts(shape), special=True)]
    if draw.name == "Div" and arrays[1].dtype.kind in "iu":
        arrays[1] = np.where(arrays[1] == 0, 4, arrays[1]).astype(arrays[1].dtype)
    return Call(arrays, stored=held(draw, arrays))


@drawn("Pow")
def power(draw: Draw) -> Call:
    """An exponent of another type; one of integers is not negative."""
    shape = draw.shape()
    exponent = draw.tensor(*draw.parts(shape), of="T1")
    exponent = np.abs(exponent) % 4 if exponent.dtype.kind in "iu" else exponent
    arrays = [draw.tensor(*draw.parts(shape), positive=True), exponent.astype(exponent.dtype)]
    return Call(arrays, stored=draw.pick((), (1,), (0, 1)))


@drawn("Mod")
def mod(draw: Draw) -> Call:
    """With the sign of the divisor, or of the dividend, which real numbers need."""
    shape = draw.shape()
    a, b = draw.tensor(*draw.parts(shape)), draw.tensor(*draw.parts(shape), positive=True)
    b = b * draw.pick(1, -1) if a.dtype.kind in "if" else b
    attributes = {"fmod": 1} if a.dtype.kind not in "iu" else draw.some(fmod=draw.flag())
    return Call([a, b.astype(a.dtype)], attributes, stored=held(draw, [a, b]))


@drawn("Max", "Min", "Sum", "Mean")
def several(draw: Draw) -> Call:
    """One tensor to three that broadcast."""
    shape = draw.shape()
    arrays = [draw.tensor(*draw.parts(shape), special=draw.name in ("Max", "Min")) for _ in range(draw.number(1, 3))]
    return Call(arrays, stored=held(draw, arrays))


@drawn("Where")
def where(draw: Draw) -> Call:
    """Two tensors and a condition that broadcast."""
    shape = draw.shape()
    arrays = [draw.tensor(*draw.parts(shape), of="bool"), *(draw.tensor(*draw.parts(shape)) for _ in range(2))]
    return Call(arrays, stored=held(draw, arrays))


@drawn("Cast", "CastLike")
def cast(draw: Draw) -> Call:
    """Numbers that the other type can have: those of no sign are not negative."""
    unsigned = draw.kinds["T2"].startswith("u")
    x = draw.tensor(*draw.shape(), of="T1", special=not unsigned and draw.kinds["T2"] in (*REAL, "bool"))
    x = np.abs(x) if unsigned and x.dtype.kind != "b" else x
    if draw.name == "CastLike":
        return Call([x, draw.tensor(of="T2")])
    return Call([x], {"to": TensorProto.DataType.Value(draw.kinds["T2"].upper())}, stored=held(draw, [x]))


@drawn("Clip", versions=(23, 6))
def clip(draw: Draw) -> Call:
    """Each limit or none; before version 11 they are attributes."""
    x = np.nan_to_num(draw.tensor(*draw.shape(), special=True))  # the runtime cuts infinite numbers also without limits
    if draw.version < 11:
        return Call([x], draw.some(min=-0.5, max=0.7))
    limits = [draw.maybe(draw.tensor()) for _ in range(2)]
    if draw.kinds["T"] in REAL:
        limits = [None if y is None else np.nan_to_num(y) for y in limits]
    return Call([x, *limits], stored=draw.pick((), (1, 2)))


@drawn("SwiGLU", versions=(28,))
def swiglu(draw: Draw) -> Call:
    """A gate and a value."""
    shape = draw.shape()
    return Call([draw.tensor(*shape), draw.tensor(*shape)], draw.some(alpha=0.7))
