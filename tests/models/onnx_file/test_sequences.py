"""Sequences of tensors in a file run as ONNX Runtime runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import NodeProto, TensorProto, helper

from orderproof import prove
from orderproof.errors import SubjectError
from orderproof.models.onnx_file.module import OnnxModule
from tests.models.onnx_file.graphs import Array, model_of
from tests.models.onnx_file.runtime import check_same
from tests.models.onnx_file.test_control import graph_of

node = helper.make_node
X = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
ORDERS = {
    "constructed": [node("SequenceConstruct", ["x", "twice"], ["s"])],
    "inserted": [
        node("SequenceEmpty", [], ["none"]), node("SequenceInsert", ["none", "x"], ["one"]),
        node("SequenceInsert", ["one", "twice", "zero"], ["s"]),
    ],
    "inserted from the end": [
        node("SequenceConstruct", ["x", "x"], ["two"]), node("SequenceInsert", ["two", "twice", "last"], ["s"]),
    ],
    "erased": [
        node("SequenceConstruct", ["x", "twice", "x"], ["three"]), node("SequenceErase", ["three", "zero"], ["s"]),
    ],
    "erased at the end": [
        node("SequenceConstruct", ["x", "twice", "x"], ["three"]), node("SequenceErase", ["three"], ["s"]),
    ],
    "mapped": [
        node("SequenceConstruct", ["x", "twice"], ["two"]),
        node("SequenceMap", ["two", "x"], ["s"], body=graph_of(
            [node("Add", ["a", "b"], ["c"])], {"c": TensorProto.FLOAT},
            {"a": (TensorProto.FLOAT, [None] * 3), "b": (TensorProto.FLOAT, [None] * 3)},
        )),
    ],
}  # fmt: skip
READ = {
    "entry": [node("SequenceAt", ["s", "zero"], ["y"])],
    "last entry": [node("SequenceAt", ["s", "last"], ["y"])],
    "joined": [node("ConcatFromSequence", ["s"], ["y"], axis=-1)],
    "stacked": [node("ConcatFromSequence", ["s"], ["y"], axis=1, new_axis=1)],
    "counted": [
        node("SequenceLength", ["s"], ["n"]), node("Cast", ["n"], ["real"], to=TensorProto.FLOAT),
        node("Mul", ["x", "real"], ["y"]),
    ],
}  # fmt: skip


def check(nodes: Sequence[NodeProto], x: Array, stored: Mapping[str, Array] = {}) -> None:
    """Compare output `y` with the runtime."""
    places = {"zero": np.array(0), "last": np.array(-1), **stored}
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    model = model_of(nodes, {"x": (kind, [f"x{d}" for d in range(x.ndim)])}, ["y"], places)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(["y"], {"x": x})
    check_same([(OnnxModule(model, "test.onnx")(torch.from_numpy(x))["y"].numpy(), expected)])


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("made", ORDERS.values(), ids=ORDERS)
def test_a_sequence(made: list[NodeProto], read: list[NodeProto]) -> None:
    check([node("Add", ["x", "x"], ["twice"]), *made, *read], X)


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_a_tensor_as_a_sequence(seed: int) -> None:
    """Of one entry, of a size that divides the axis or not, or of several sizes, also of none."""
    draw = np.random.default_rng(seed)
    kind, axis = draw.choice([np.float32, np.float64, np.int32, np.int64]), int(draw.integers(-2, 2))
    x = draw.integers(0, 9, (int(draw.integers(1, 7)), int(draw.integers(1, 7)))).astype(kind)
    size = x.shape[axis]
    cut = int(draw.integers(size + 1))
    split = (None, np.array(int(draw.integers(1, size + 1))), np.array([cut, size - cut]))[seed % 3]
    names = ["x"] if split is None else ["x", "split"]
    attributes = {"axis": axis} | ({"keepdims": int(draw.integers(2))} if split is None else {})
    nodes = [
        node("SplitToSequence", names, ["s"], **attributes),
        node("SequenceAt", ["s", "last"], ["y"]),
    ]
    check(nodes, x, {} if split is None else {"split": split})


def test_a_loop_that_collects_a_sequence() -> None:
    """As torch exports a list that a loop appends to."""
    body = helper.make_graph(
        [
            node("Gather", ["x", "turn"], ["row"], axis=1), node("SequenceInsert", ["rows", "row"], ["more"]),
            node("Identity", ["go"], ["go_on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("rows", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("more", TensorProto.FLOAT, None),
        ],
    )  # fmt: skip
    nodes = [
        node("SequenceEmpty", [], ["none"]), node("Loop", ["count", "true", "none"], ["all"], body=body),
        node("ConcatFromSequence", ["all"], ["y"], axis=1, new_axis=1),
    ]  # fmt: skip
    check(nodes, X, {"count": np.array(3), "true": np.array(True)})


def test_an_optional_value_is_the_value() -> None:
    nodes = [
        node("Optional", ["x"], ["maybe"]), node("OptionalHasElement", ["maybe"], ["there"]),
        node("OptionalGetElement", ["maybe"], ["own"]), node("Cast", ["there"], ["one"], to=TensorProto.FLOAT),
        node("Mul", ["own", "one"], ["y"]),
    ]  # fmt: skip
    check(nodes, X)


def test_a_place_outside_a_sequence_is_refused() -> None:
    nodes = [node("SequenceConstruct", ["x"], ["s"]), node("SequenceAt", ["s", "two"], ["y"])]
    model = model_of(nodes, {"x": (TensorProto.FLOAT, [2])}, ["y"], {"two": np.array(2)})
    with pytest.raises(SubjectError, match="SequenceAt is not supported with place 2 in a sequence of 1"):
        OnnxModule(model, "test.onnx")(torch.zeros(2))


def test_a_sequence_as_an_output_is_refused() -> None:
    model = model_of([node("SequenceConstruct", ["x"], ["y"])], {"x": (TensorProto.FLOAT, [2])}, ["y"])
    with pytest.raises(SubjectError, match="expected a tensor; got a sequence of 1 of them"):
        OnnxModule(model, "test.onnx")(torch.zeros(2))


def test_a_file_with_a_sequence_has_a_theorem(tmp_path: Path) -> None:
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]), node("ConcatFromSequence", ["s"], ["z"], axis=-1),
        node("CumSum", ["z", "axis"], ["y"]),
    ]  # fmt: skip
    inputs = {"x": (TensorProto.FLOAT, ["batch", "sequence", 4])}
    onnx.save(model_of(nodes, inputs, ["y"], {"axis": np.array(1)}), tmp_path / "model.onnx")
    finding = prove(str(tmp_path / "model.onnx"), "causal")
    assert finding.verdict == "proved"
    assert finding.theorem is not None
