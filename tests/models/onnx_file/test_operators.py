"""Operators of ONNX give what ONNX's own reference gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.module import OnnxModule
from tests.models.onnx_file.graphs import Array, model_of

RANDOM = np.random.default_rng(0)


def real(*shape: int) -> Array:
    """Numbers from a normal distribution."""
    return RANDOM.normal(size=shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A call of one operator: arrays are inputs, or stored in the file if `stored` names their place."""

    operator: str
    arrays: tuple[Array | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    stored: tuple[int, ...] = ()
    version: int = 20
    outputs: int = 1


def case(operator: str, *arrays: Array | None, stored: tuple[int, ...] = (), version: int = 20, outputs: int = 1,
         **attributes: Any) -> Case:  # fmt: skip
    """A case."""
    return Case(operator, arrays, attributes, stored, version, outputs)


X, Y, POSITIVE = real(2, 3, 4), real(2, 3, 4), np.abs(real(2, 3)) + 0.5
IDS = RANDOM.integers(0, 4, (2, 3))
N = np.array
CASES = [
    *(case(name, X) for name in (
        "Abs", "Neg", "Exp", "Erf", "Sigmoid", "Tanh", "Relu", "Softplus", "Sign", "Floor", "Ceil", "Sin", "Cos",
        "HardSwish", "Mish", "Elu", "LeakyRelu", "HardSigmoid", "Selu", "Gelu", "Softsign", "Identity", "Softmax",
        "LogSoftmax", "Transpose", "Flatten", "IsNaN", "Dropout",
    )),
    *(case(name, POSITIVE) for name in ("Sqrt", "Log", "Reciprocal")),
    *(case(name, X, Y) for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Equal", "Less", "MatMul")
      if name != "MatMul"),
    case("Div", N([-7, 7, 9]), N([2, 2, -4])), case("Pow", POSITIVE, N([2, 2, 3])), case("Mod", N([-7, 7]), N([3, 3])),
    case("Gelu", X, approximate="tanh"), case("Cast", X, to=onnx.TensorProto.INT64),
    case("Where", X > 0, X, Y), case("Clip", X, N(-0.5, np.float32), N(0.5, np.float32), stored=(1, 2)),
    case("MatMul", X, real(2, 4, 5)), case("Einsum", X, Y, equation="bij,bkj->bik"),
    case("Gemm", real(2, 3), real(4, 3), real(4), transB=1, alpha=0.5, beta=2.0),
    case("Reshape", X, N([0, -1, 2]), stored=(1,)), case("Transpose", X, perm=[1, 0, 2]),
    case("Squeeze", real(2, 1, 3), N([1]), stored=(1,)), case("Unsqueeze", X, N([0, 4]), stored=(1,)),
    case("Concat", X, Y, axis=1), case("Split", X, N([1, 3]), stored=(1,), outputs=2, axis=2),
    case("Split", X, outputs=2, axis=2, num_outputs=2),
    case("Slice", X, N([0, 1]), N([2, -1]), N([0, 2]), stored=(1, 2, 3)),
    case("Slice", X, N([-1]), N([-100]), N([1]), N([-1]), stored=(1, 2, 3, 4)),
    case("Expand", real(3, 1), N([2, 3, 4]), stored=(1,)), case("Tile", X, N([1, 2, 1]), stored=(1,)),
    case("Pad", X, N([0, 1, 0, 0, 0, 2]), stored=(1,)), case("Pad", X, N([0, 0, 1, 0, 0, 2]), stored=(1,), mode="edge"),
    case("Pad", real(2, 3, 4, 5), N([0, 0, 0, 2, 0, 0, 0, 1]), stored=(1,), mode="reflect"),
    case("Trilu", X, upper=0), case("Trilu", X, N(1), stored=(1,)), case("EyeLike", real(3, 4), k=1),
    case("ConstantOfShape", N([2, 3]), stored=(0,)), case("Range", N(1), N(9), N(2), stored=(0, 1, 2)),
    case("Gather", real(4, 5), IDS), case("Gather", X, N(1), axis=1, stored=(1,)), case("Gather", X, N([2, 0]), axis=1),
    case("GatherElements", X, RANDOM.integers(0, 3, (2, 3, 4)), axis=1), case("GatherND", X, N([[0, 1], [1, 2]])),
    case("ScatterElements", X, RANDOM.integers(0, 3, (2, 1, 4)), real(2, 1, 4), axis=1),
    case("ScatterND", X, N([[0, 1], [1, 2]]), real(2, 4)),
    case("OneHot", IDS, N(4), N([0.0, 1.0], np.float32), stored=(1,)),
    case("CumSum", X, N(1), stored=(1,)), case("CumSum", X, N(1), stored=(1,), exclusive=1, reverse=1),
    case("TopK", X, N([2]), stored=(1,), outputs=2), case("ArgMax", X, axis=1, keepdims=0),
    *(case(name, X, N([1]), stored=(1,)) for name in (
        "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
        "ReduceLogSumExp",
    )),
    case("LayerNormalization", X, real(4), real(4), axis=-1),
    case("InstanceNormalization", X, real(3), real(3)),
    case("BatchNormalization", X, real(3), real(3), real(3), np.abs(real(3))),
    case("LpNormalization", X, axis=-1, p=2),
    case("Conv", real(2, 3, 7), real(4, 3, 3), real(4), pads=[2, 0]),
    case("Conv", real(2, 4, 7), real(4, 1, 3), group=4),
    case("ConvTranspose", real(2, 3, 5), real(3, 4, 3), strides=[2]),
    case("AveragePool", real(2, 3, 6), kernel_shape=[2], strides=[2]), case("GlobalAveragePool", real(2, 3, 5)),
    case("MaxPool", real(2, 3, 6), kernel_shape=[3]),
    case("DequantizeLinear", N([[1, -2], [3, 4]], np.int8), N([0.5, 2.0], np.float32), N([1, 0], np.int8), axis=1),
    case("LSTM", real(5, 2, 4), real(1, 12, 4), real(1, 12, 3), real(1, 24), outputs=3, hidden_size=3),
    case("GRU", real(5, 2, 4), real(1, 9, 4), real(1, 9, 3), real(1, 18), outputs=2, hidden_size=3,
         linear_before_reset=1),
    case("RNN", real(5, 2, 4), real(1, 3, 4), real(1, 3, 3), real(1, 6), outputs=2, hidden_size=3),
]  # fmt: skip


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.operator)
def test_an_operator_gives_what_the_reference_gives(one: Case) -> None:
    names = [None if array is None else f"x{k}" for k, array in enumerate(one.arrays)]
    outputs = [f"y{k}" for k in range(one.outputs)]
    node = helper.make_node(one.operator, [name or "" for name in names], outputs, name="node", **one.attributes)
    arrays = {name: array for name, array in zip(names, one.arrays, strict=True) if name and array is not None}
    stored = {f"x{k}": arrays.pop(f"x{k}") for k in one.stored}
    kinds = {k: (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in arrays.items()}
    model = model_of([node], kinds, outputs, stored, one.version)
    expected = ReferenceEvaluator(model).run(None, arrays)
    found = OnnxModule(model, "test.onnx")(*(torch.from_numpy(array) for array in arrays.values()))
    for value, reference in zip(found.values(), expected, strict=True):
        assert tuple(value.shape) == np.shape(reference)
        np.testing.assert_allclose(value.numpy().astype(np.float64), np.asarray(reference, np.float64), atol=2e-5)


def test_sizes_stay_numbers() -> None:
    """Reshape(x, Concat(Shape(x)[0], [-1])) and a shape that is compared, as exporters write `expand`."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "first"], ["list"]),
        helper.make_node("Mul", ["list", "two"], ["double"]),
        helper.make_node("Div", ["double", "two"], ["half"]),
        helper.make_node("Concat", ["half", "rest"], ["sizes"], axis=0),
        helper.make_node("Equal", ["sizes", "rest"], ["open"]),
        helper.make_node("ConstantOfShape", ["count"], ["ones"], value=helper.make_tensor("one", 7, [1], [1])),
        helper.make_node("Where", ["open", "ones", "sizes"], ["broadcast"]),
        helper.make_node("Reshape", ["x", "sizes"], ["flat"]),
        helper.make_node("Expand", ["flat", "broadcast"], ["y"]),
    ]
    stored = {"first": N(0), "two": N([2]), "rest": N([-1]), "count": N([2])}
    model = model_of(nodes, {"x": (1, ["rows", 3, 4])}, ["y"], stored)
    x = torch.randn(5, 3, 4)
    assert torch.equal(OnnxModule(model, "test.onnx")(x)["y"], x.flatten(1))


def test_an_operator_without_translation_is_named() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["y"]),
        helper.make_node("Mystery", ["y"], ["z"], domain="other.domain"),
    ]
    with pytest.raises(SubjectError, match=r"no translation to torch: NonZero \(1\), other.domain.Mystery \(1\)"):
        OnnxModule(model_of(nodes, {"x": (1, [2])}, ["z"]), "test.onnx")
