"""Operators of ONNX give what ONNX Runtime gives, or are refused with one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from onnx.reference import ReferenceEvaluator

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.module import OnnxModule
from orderproof.models.onnx_file.operation import functions
from tests.models.onnx_file.graphs import Array, model_of
from tests.models.onnx_file.runtime import both_results, check_same
from tests.models.onnx_file.sweep.compare import OTHER, SAME, outcomes
from tests.models.onnx_file.sweep.draw import MICROSOFT, drawers

NOT_IN_THE_RUNTIME = {"SwiGLU"}  # on a processor


@pytest.mark.parametrize(("domain", "name"), drawers(), ids=lambda x: x or "standard")
def test_an_operator_gives_what_the_runtime_gives(domain: str, name: str) -> None:
    """A few calls for each type of numbers; `python -m tests.models.onnx_file.sweep` makes many."""
    found = list(outcomes(drawers()[domain, name], range(2)))
    assert [x for x in found if x.result == OTHER] == []
    assert name in NOT_IN_THE_RUNTIME or any(x.result == SAME for x in found)


def test_every_operator_is_drawn() -> None:
    names = {name.removeprefix("com.microsoft.") for name in functions()}
    assert names - {name for _, name in drawers()} == {"orderproof.SafeSoftmax"}


def ones(*shape: int, kind: Any = np.float32) -> Array:
    """Ones of a type."""
    return np.ones(shape, kind)


ROWS = [ones(1, 2, 3, 4)] * 3
LAYER = [ones(4, 2, 3), ones(1, 5, 3), ones(1, 5, 5)]
REFUSALS: list[tuple[str, Sequence[Array | None], dict[str, Any], dict[str, Any], str]] = [
    ("SkipLayerNormalization", [ones(1, 3, 4), ones(1, 3, 4), ones(4)], {},
     {"domain": MICROSOFT, "outputs": ("y", "mean")}, "the mean and the deviation as outputs"),
    ("LayerNormalization", [ones(3, 4), ones(4)], {}, {"outputs": ("y", "mean")}, "the mean and the deviation"),
    ("DequantizeLinear", [ones(2, 3, kind=np.uint8), ones(2, 3)], {}, {}, "scales of 2 axes without blocks"),
    ("FusedConv", [ones(1, 4, 5), ones(6, 4, 3)], {"activation": "Mystery"}, {"domain": MICROSOFT},
     "activation 'Mystery'"),
    ("RNN", LAYER, {"hidden_size": 5, "clip": 1.0}, {"outputs": ("y", "h")}, "clip"),
    ("RNN", LAYER, {"hidden_size": 5, "activations": ["Affine"]}, {"outputs": ("y", "h")}, "activation affine"),
    ("GatherBlockQuantized", [ones(2, 8, kind=np.uint8), np.zeros(1, np.int64), ones(2, 2)],
     {"bits": 2, "block_size": 16, "quantize_axis": 1}, {"domain": MICROSOFT}, "2 bits"),
    ("Attention", ROWS, {}, {"version": 23, "outputs": ("y", "", "", "scores")}, "the scores as an output"),
    ("Attention", [*ROWS, np.zeros((3, 3), np.int8)], {"is_causal": 1}, {"version": 23},
     "a mask of integers together with is_causal"),
    ("MultiHeadAttention", [ones(1, 2, 8), ones(1, 5, 8), ones(1, 5, 8)], {"num_heads": 2, "unidirectional": 1},
     {"domain": MICROSOFT}, "unidirectional and another number of new keys"),
    ("Dropout", [ones(3), None, np.array(True)], {}, {"stored": (2,)}, "training"),
    ("MaxPool", [ones(1, 1, 5)], {"kernel_shape": [2]}, {"outputs": ("y", "places")}, "the places as an output"),
    ("ReduceLogSumExp", [ones(3, kind=np.int32)], {}, {}, "integers"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arrays", "attributes", "options", "line"), REFUSALS)
def test_what_has_no_translation_is_refused(
    name: str, arrays: Sequence[Array | None], attributes: dict[str, Any], options: dict[str, Any], line: str
) -> None:
    with pytest.raises(SubjectError, match=f"ONNX operator {name} is not supported with {line}"):
        both_results(name, arrays, attributes, **options)


def test_an_index_outside_is_refused_by_the_name_of_the_operator() -> None:
    with pytest.raises(RuntimeError, match="ONNX operator Gather cannot run in torch: RuntimeError: .*bounds"):
        both_results("Gather", [ones(3, 3), np.full((2, 2), -1)], {"axis": 1})


def test_a_slice_backward_starts_at_the_first_place_or_later() -> None:
    """In Python a start before the axis gives nothing; in ONNX Runtime the largest end means none."""
    limits = [np.array([-100]), np.array([-100]), np.array([0]), np.array([-1])]
    check_same(both_results("Slice", [np.arange(3.0, dtype=np.float32), *limits], {}, stored=(1, 2, 3, 4)))
    limits = [np.array([2]), np.array([2**63 - 1]), np.array([0]), np.array([-1])]
    check_same(both_results("Slice", [np.arange(3.0, dtype=np.float32), *limits], {}, stored=(1, 2, 3, 4)))


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.7}])
def test_a_gated_value_is_that_of_the_reference(attributes: dict[str, float]) -> None:
    """ONNX Runtime 1.32 has no kernel for it on a processor."""
    arrays = {key: np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32) for key in "ab"}
    node = helper.make_node("SwiGLU", ["a", "b"], ["y"], **attributes)
    model = model_of([node], {key: (onnx.TensorProto.FLOAT, [2, 3]) for key in arrays}, ["y"], version=28)
    found = OnnxModule(model, "test.onnx")(*(torch.from_numpy(x) for x in arrays.values()))["y"]
    np.testing.assert_allclose(found.numpy(), ReferenceEvaluator(model).run(None, arrays)[0], atol=1e-6)


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
    stored = {"first": np.array(0), "two": np.array([2]), "rest": np.array([-1]), "count": np.array([2])}
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
