"""Samples of elementwise operators."""

from __future__ import annotations

import torch

from tests.diagnosis.sampling.operands import S, X

UNARY = [
    "abs", "atan", "ceil", "clone", "contiguous", "alias", "lift_fresh_copy", "detach", "cos", "erf", "exp",
    "expm1", "floor", "gelu", "hardsigmoid", "hardtanh", "isfinite", "isinf", "isnan", "log_sigmoid",
    "logical_not", "mish", "neg", "positive", "relu", "relu6", "round", "selu", "sgn", "sigmoid", "sign",
    "silu", "sin", "softplus", "square", "tanh", "trunc", "isneginf", "nan_to_num", "elu", "leaky_relu",
    "frac",
]  # fmt: skip

POSITIVE = [
    "sqrt", "rsqrt", "log", "log2", "log1p", "reciprocal", "lgamma", "digamma",
]  # fmt: skip

BINARY = [
    "add.Tensor", "sub.Tensor", "mul.Tensor", "multiply.Tensor", "maximum", "minimum", "eq.Tensor",
    "lt.Tensor", "ge.Tensor",
]  # fmt: skip

BOOLEAN = [
    "bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "logical_and", "logical_or",
    "__and__.Tensor", "__or__.Tensor", "__xor__.Tensor", "eq.Tensor", "mul.Tensor", "maximum",
]  # fmt: skip

POINTWISE = [
    *(S(name, (X(3, 2),)) for name in UNARY),
    *(S(name, (X(3, 2, kind="positive"),)) for name in POSITIVE),
    *(S(name, (X(3, 3), X(3, 3))) for name in BINARY),
    *(S(name, (X(2, 3, 3), X(3, 1))) for name in BINARY),
    *(S(name, (X(3, 3, kind="bool"), X(3, 3, kind="bool"))) for name in BOOLEAN),
    *(S(name, (X(1, 3, kind="bool"), X(3, 1, kind="bool"))) for name in BOOLEAN[:5]),
    S("mul.Tensor", (X(3, 3), X(3, 3, kind="bool"))),
    S("mul.Tensor", (X(3, 2), X())),
    S("add.Tensor", (X(), X(3, 2))),
    S("add.Tensor", (X(3, 3), X(3, 3, kind="bool"))),
    S("add.Tensor", (X(3, 2), X(3, 2)), {"alpha": 2}),
    S("add.Tensor", (X(3, 2), X(3, 2)), {"alpha": -1}),
    S("add.Tensor", (X(3, 2), X(3, 2)), {"alpha": 0}),
    S("sub.Tensor", (X(3, 2), X(3, 2)), {"alpha": 3}),
    S("add.Tensor", (X(3, 2), -1e9)),
    S("add.Tensor", (X(3, 2), 1e9)),
    S("add.Tensor", (X(3, 2), 1.5)),
    S("mul.Tensor", (X(3, 2), 0.0)),
    S("mul.Tensor", (X(3, 2), -1.0)),
    S("mul.Tensor", (X(3, 2), 1e-9)),
    S("mul.Scalar", (X(3, 2), 2.0)),
    S("mul.Tensor", (X(3, 2), 1e9)),
    S("div.Tensor", (X(3, 2), 8.0)),
    S("div.Tensor", (X(3, 2), -2.0)),
    S("div.Tensor", (X(3, 2), X(3, 1, kind="positive"))),
    S("div.Tensor", (X(3, 2), X(3, 2)), bounded=False),
    S("true_divide.Tensor", (X(3, 2), X(3, 2, kind="positive"))),
    S("div.Tensor_mode", (X(3, 2), X(3, 2, kind="positive")), {"rounding_mode": "floor"}),
    S("rsub.Scalar", (X(3, 2), 1.0)),
    S("rsub.Scalar", (X(3, 2), -1e9)),
    S("pow.Tensor_Scalar", (X(3, 2), 2)),
    S("pow.Tensor_Tensor", (X(3, 2, kind="positive"), X(3, 2))),
    S("clamp", (X(3, 2), -1.0, 1.0)),
    S("clamp", (X(3, 2), -1e9)),
    S("clamp_min", (X(3, 2), -1e4)),
    S("lerp.Tensor", (X(3, 2), X(3, 2), X(3, 1, kind="unit"))),
    S("addcmul", (X(3, 2), X(3, 2), X(3, 2))),
    S("atan2", (X(3, 2), X(3, 2))),
    S("fmod.Tensor", (X(3, 2), X(3, 2, kind="positive"))),
    S("remainder.Tensor", (X(3, 2), X(3, 2, kind="positive"))),
    S("logaddexp", (X(3, 2), X(3, 2))),
    S("max.other", (X(3, 2), X(3, 2))),
    S("gt.Scalar", (X(3, 3), 0.0)),
    S("le.Scalar", (X(3, 3), -1e4)),
    S("bitwise_and.Tensor", (X(3, 2, kind="int"), X(3, 2, kind="int"))),
    S("bitwise_or.Tensor", (X(3, 2, kind="int"), X(3, 2, kind="int"))),
    S("logical_and", (X(3, 2, kind="int"), X(3, 2))),
    S("add.Tensor", (X(3, 2, kind="int"), X(2, kind="int"))),
    S("mul.Tensor", (X(3, 2, kind="int"), X(3, 2, kind="int"))),
    S("bitwise_not", (X(3, 2, kind="bool"),)),
    S("_to_copy", (X(3, 2),), {"dtype": torch.float32}),
    S("_to_copy", (X(3, 2),), {"dtype": torch.bool}),
    S("_to_copy", (X(3, 2, kind="bool"),), {"dtype": torch.float64}),
    S("to.dtype", (X(3, 2, kind="int"), torch.float64)),
    S("to.other", (X(3, 2), X(2, kind="int"))),
    S("type_as", (X(3, 2, kind="int"), X(4))),
    S("where.self", (X(3, 3, kind="bool"), X(3, 3), X(3, 3))),
    S("where.self", (X(3, 3, kind="bool"), X(3, 1), X())),
    S("where.self", (X(3, 1, kind="bool"), X(1, 3), X(3, 3))),
    S("where.ScalarSelf", (X(3, 2, kind="bool"), -1e9, X(3, 2))),
    S("where.ScalarOther", (X(3, 2, kind="bool"), X(3, 2), 0.0)),
    S("where.ScalarOther", (X(3, 2, kind="bool"), X(3, 2), -torch.inf)),
    S("masked_fill.Scalar", (X(3, 3), X(3, 3, kind="bool"), -torch.inf)),
    S("masked_fill.Scalar", (X(2, 3, 3), X(3, 3, kind="bool"), -1e9)),
    S("masked_fill.Scalar", (X(3, 3), X(3, kind="bool"), 0.0)),
    S("where.self", (X(3, 1, kind="bool"), X(), X(3, 3))),
    S("masked_fill.Scalar", (X(3, 2, kind="bool"), X(3, 2, kind="bool"), 2)),
    S("dropout", (X(3, 2), 0.5, False)),
    S("feature_dropout", (X(3, 2), 0.5, False)),
    S("alpha_dropout", (X(3, 2), 0.5, False)),
    S("_prelu_kernel", (X(2, 3), X(1, 3))),
    S("log_sigmoid_forward", (X(3, 2),)),
    S("frexp.Tensor", (X(3, 2),)),
    *(S(name, (X(3, 3), d)) for name in ("tril", "triu") for d in (-1, 0, 1)),
    S("tril", (X(2, 3, 4),)),
    S("triu", (X(3, 3, kind="bool"), 1)),
]
