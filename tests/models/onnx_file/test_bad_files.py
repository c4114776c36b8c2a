"""Files that no runtime takes are refused with one line, before memory is taken for what they state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

from orderproof.errors import SubjectError
from orderproof.models import load
from tests.models.onnx_file.graphs import Array, model_of
from tests.models.onnx_file.test_control import graph_of

node = helper.make_node
X: dict[str, tuple[int, Sequence[int | str]]] = {"x": (TensorProto.FLOAT, ["batch", "sequence", 8])}
LARGE = np.array([2**40, 1, 1])


def refusal(folder: Path, content: bytes) -> str:
    """The line with which a file is refused."""
    (folder / "model.onnx").write_bytes(content)
    with pytest.raises(SubjectError) as refused:
        load(str(folder / "model.onnx"))
    assert "\n" not in str(refused.value)
    return str(refused.value)


def built(nodes: Sequence[NodeProto], stored: Mapping[str, Array] = {}, inputs: Any = X) -> bytes:
    """A file with output `y`."""
    return model_of(nodes, inputs, ["y"], stored).SerializeToString()


CASES = {
    "cycle": (
        built([node("Add", ["x", "z"], ["y"], name="sum"), node("Relu", ["y"], ["z"])]),
        "node 'sum' .Add. reads 'z', which no node before it gives",
    ),
    "order": (
        built([node("Relu", ["h"], ["y"], name="late"), node("Relu", ["x"], ["h"])]),
        "node 'late' .Relu. reads 'h', which no node before it gives",
    ),
    "two nodes": (
        built([node("Relu", ["x"], ["y"]), node("Exp", ["x"], ["y"], name="second")]),
        "node 'second' .Exp. gives 'y', which a node before it gives too",
    ),
    "no output": (built([node("Relu", ["x"], ["h"])]), "no node gives the output 'y'"),
    "types": (
        built([node("Add", ["x", "k"], ["y"])], {"k": np.array([1])}), "ONNX Runtime refuses the graph: .*Type Error",
    ),
    "large input": (
        built([node("Relu", ["x"], ["y"])], inputs={"x": (TensorProto.FLOAT, ["batch", 2**40, 8])}),
        "input 'x' has the shape .*, which no example can have",
    ),
    "negative size": (
        built([node("Relu", ["x"], ["y"])], inputs={"x": (TensorProto.FLOAT, ["batch", -4, 8])}),
        "input 'x' has the shape .*, which no example can have",
    ),
    "large tile": (built([node("Tile", ["x", "k"], ["y"])], {"k": LARGE}), "of memory|allocate memory"),
    "text": (
        built([node("Identity", ["x"], ["y"])], inputs={"x": (TensorProto.STRING, ["batch", "sequence"])}),
        "numbers of type STRING, which is not supported",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "line"), CASES.values(), ids=CASES)
def test_a_bad_graph_is_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    assert re.search(line, refusal(tmp_path, content))


def test_a_tensor_of_another_size_than_stated_is_refused(tmp_path: Path) -> None:
    model = model_of([node("MatMul", ["x", "w"], ["y"])], X, ["y"])
    model.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[2**40, 2**20], raw_data=b"\0" * 64))
    assert "tensor 'w' cannot be read" in refusal(tmp_path, model.SerializeToString())


def test_a_text_that_is_stored_is_refused(tmp_path: Path) -> None:
    model = model_of([node("Identity", ["x"], ["y"])], X, ["y"])
    model.graph.initializer.append(helper.make_tensor("k", TensorProto.STRING, [1], [b"abc"]))
    assert "tensor 'k' has texts" in refusal(tmp_path, model.SerializeToString())


def test_a_loop_of_many_turns_is_refused(tmp_path: Path) -> None:
    body = graph_of(
        [node("Identity", ["go"], ["go_on"]), node("Identity", ["v"], ["next"])],
        {"go_on": TensorProto.BOOL, "next": TensorProto.FLOAT},
        {"turn": (TensorProto.INT64, []), "go": (TensorProto.BOOL, []), "v": (TensorProto.FLOAT, [])},
    )
    nodes = [node("Loop", ["count", "go", "x"], ["y"], body=body)]
    found = refusal(tmp_path, built(nodes, {"count": np.array(2**50), "go": np.array(True)}))
    assert "Loop is not supported with more than 4096 turns" in found


@pytest.mark.parametrize("part", [0.0, 0.5, 0.97])
def test_a_cut_file_is_one_line(tmp_path: Path, part: float) -> None:
    whole = built([node("MatMul", ["x", "w"], ["y"])], {"w": np.ones((8, 8), np.float32)})
    refused = refusal(tmp_path, whole[: int(len(whole) * part)])
    assert "cannot be read as an ONNX file" in refused
    assert part == 0.0 or "may be cut; export, copy or download it again" in refused


def test_missing_weights_are_named(tmp_path: Path) -> None:
    model = model_of([node("MatMul", ["x", "w"], ["y"])], X, ["y"], {"w": np.ones((8, 8), np.float32)})
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert "weights.bin" in refusal(tmp_path, path.read_bytes())
