"""Conditions and loops of a file run as ONNX Runtime runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import GraphProto, NodeProto, TensorProto, helper

from orderproof import prove
from orderproof.errors import SubjectError
from orderproof.models.onnx_file.module import OnnxModule
from tests.models.onnx_file.graphs import Array, model_of
from tests.models.onnx_file.runtime import both_results, check_same

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def graph_of(
    nodes: Sequence[NodeProto], outputs: Mapping[str, int], inputs: Mapping[str, tuple[int, Sequence[int | str]]] = {}
) -> GraphProto:
    """A branch, or the body of a loop: outputs have a type, and inputs a type and a shape."""
    return helper.make_graph(
        list(nodes), "inner",
        [helper.make_tensor_value_info(name, kind, sizes) for name, (kind, sizes) in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
    )  # fmt: skip


def check(nodes: Sequence[NodeProto], arrays: Mapping[str, Array], stored: Mapping[str, Array] = {}) -> onnx.ModelProto:
    """Compare output `y` with the runtime, and return the model."""
    kinds = {
        k: (helper.np_dtype_to_tensor_dtype(x.dtype), [f"{k}{d}" for d in range(x.ndim)]) for k, x in arrays.items()
    }
    model = model_of(nodes, kinds, ["y"], stored)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(["y"], dict(arrays))
    found = OnnxModule(model, "test.onnx")(*(torch.from_numpy(x) for x in arrays.values()))["y"]
    check_same([(found.numpy(), expected)])
    return model


def condition(name: str, *, squeeze: bool = False) -> NodeProto:
    """Twice x, or x plus the output of a node around; or x without an axis, or x."""
    yes = node("Squeeze", ["x", "axis"], ["a"]) if squeeze else node("Add", ["x", "x"], ["a"])
    no = node("Identity", ["x"], ["b"]) if squeeze else node("Add", ["x", "around"], ["b"])
    return node(
        "If", [name], ["y"], then_branch=graph_of([yes], {"a": FLOAT}), else_branch=graph_of([no], {"b": FLOAT})
    )


@pytest.mark.parametrize("chosen", [True, False])
def test_a_stored_condition(chosen: bool) -> None:
    check([node("Exp", ["x"], ["around"]), condition("go")], {"x": X}, {"go": np.array(chosen)})


@pytest.mark.parametrize("size", [1, 3])
def test_a_condition_on_a_size(size: int) -> None:
    """As torch exports `x.squeeze(1)`."""
    nodes = [
        node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "axis"], ["size"]),
        node("Equal", ["size", "one"], ["go"]), condition("go", squeeze=True),
    ]  # fmt: skip
    check(nodes, {"x": X[:, :size]}, {"axis": np.array([1]), "one": np.array([1])})


@pytest.mark.parametrize("sign", [1, -1])
def test_a_condition_on_data(sign: int) -> None:
    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0), node("Greater", ["most", "zero"], ["go"]),
        node("Exp", ["x"], ["around"]), condition("go"),
    ]  # fmt: skip
    check(nodes, {"x": np.abs(X) * np.float32(sign)}, {"zero": np.array(0.0, np.float32)})


def test_a_condition_on_data_between_two_shapes_is_refused() -> None:
    model = model_of(
        [condition("go", squeeze=True)], {"go": (BOOL, []), "x": (FLOAT, [2, 1])}, ["y"], {"axis": np.array([1])}
    )
    with pytest.raises(
        SubjectError, match="If is not supported with a condition on data between outputs of two shapes"
    ):
        OnnxModule(model, "test.onnx")(torch.tensor(True), torch.zeros(2, 1))


@pytest.mark.parametrize("place", [0, 1])
def test_a_loop_over_the_entries_of_an_axis(place: int) -> None:
    """Running sums: the carried one (0), or that after each turn (1)."""
    body = graph_of(
        [
            node("Gather", ["x", "turn"], ["row"], axis=1), node("Add", ["sum", "row"], ["next"]),
            node("Identity", ["go"], ["go_on"]), node("Identity", ["next"], ["each"]),
        ],
        {"go_on": BOOL, "next": FLOAT, "each": FLOAT},
        {"turn": (INT64, []), "go": (BOOL, []), "sum": (FLOAT, [2, 4])},
    )  # fmt: skip
    outputs = [["y", "all"], ["last", "y"]][place]
    nodes = [
        node("Shape", ["x"], ["size"], start=1, end=2), node("Squeeze", ["size"], ["count"]),
        node("Loop", ["count", "true", "first"], outputs, body=body),
    ]  # fmt: skip
    check(nodes, {"x": X}, {"true": np.array(True), "first": np.zeros((2, 4), np.float32)})


def test_a_loop_that_data_end_is_refused() -> None:
    body = graph_of(
        [node("Less", ["sum", "limit"], ["go_on"]), node("Add", ["sum", "sum"], ["next"])],
        {"go_on": BOOL, "next": FLOAT}, {"turn": (INT64, []), "go": (BOOL, []), "sum": (FLOAT, [])},
    )  # fmt: skip
    stored = {"count": np.array(5), "true": np.array(True), "limit": np.array(3, np.float32)}
    model = model_of([node("Loop", ["count", "true", "x"], ["y"], body=body)], {"x": (FLOAT, [])}, ["y"], stored)
    with pytest.raises(SubjectError, match="Loop is not supported with an end that data decide"):
        OnnxModule(model, "test.onnx")(torch.tensor(1.0))


def test_a_scan() -> None:
    body = graph_of(
        [node("Add", ["sum", "row"], ["next"]), node("Exp", ["next"], ["each"])],
        {"next": FLOAT, "each": FLOAT}, {"sum": (FLOAT, [3, 4]), "row": (FLOAT, [3, 4])},
    )  # fmt: skip
    scan = node("Scan", ["first", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    check([scan], {"x": X}, {"first": np.zeros((3, 4), np.float32)})


@pytest.mark.parametrize("seed", range(6))
def test_reversed_sequences(seed: int) -> None:
    draw = np.random.default_rng(seed)
    time, rows = int(draw.integers(1, 7)), int(draw.integers(1, 4))
    axes = {"time_axis": int(draw.integers(2))}
    axes["batch_axis"] = 1 - axes["time_axis"]
    shape = ((time, rows), (rows, time))[axes["time_axis"]] + ((), (2,), (2, 3))[draw.integers(3)]
    lengths = draw.integers(1, time + 1, rows)
    check_same(both_results("ReverseSequence", [draw.normal(size=shape).astype(np.float32), lengths], axes))


def test_a_file_with_conditions_on_sizes_has_a_theorem(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["size"], start=2, end=3), node("Equal", ["size", "one"], ["go"]),
        condition("go", squeeze=True), node("CumSum", ["y", "axis"], ["z"]),
    ]  # fmt: skip
    stored = {"axis": np.array([1]), "one": np.array([1])}
    onnx.save(model_of(nodes, {"x": (FLOAT, ["batch", "sequence", 8])}, ["z"], stored), tmp_path / "model.onnx")
    finding = prove(str(tmp_path / "model.onnx"), "causal")
    assert finding.verdict == "proved"
    assert finding.theorem is not None
