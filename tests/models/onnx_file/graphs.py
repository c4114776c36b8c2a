"""ONNX models from lists of nodes, and what ONNX's own reference computes for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

Array = NDArray[Any]


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[int, Sequence[int | str]]],
    outputs: Sequence[str],
    stored: Mapping[str, Array] = {},
    version: int = 20,
) -> ModelProto:
    """A model with inputs of a type and shape, stored tensors, and outputs of any shape."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, kind, list(sizes)) for name, (kind, sizes) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)


def attention_model(*, causal: bool) -> ModelProto:
    """Attention of tokens to tokens of a file: a stored triangle of -inf hides later ones."""
    generator = np.random.default_rng(0)
    hidden = np.triu(np.full((16, 16), -np.inf, np.float32), 1) if causal else np.zeros((16, 16), np.float32)
    stored = {
        "layer.query": generator.normal(size=(8, 8)).astype(np.float32),
        "layer.key": generator.normal(size=(8, 8)).astype(np.float32),
        "hidden": hidden,
        "zero": np.array([0, 0]),
        "axes": np.array([0, 1]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "layer.query"], ["q"], name="/layer/MatMul"),
        helper.make_node("MatMul", ["x", "layer.key"], ["k"], name="/layer/MatMul_1"),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1], name="/layer/Transpose"),
        helper.make_node("MatMul", ["q", "kt"], ["scores"], name="/layer/MatMul_2"),
        helper.make_node("Shape", ["x"], ["size"], start=1, end=2),
        helper.make_node("Concat", ["size", "size"], ["sizes"], axis=0),
        helper.make_node("Slice", ["hidden", "zero", "sizes", "axes"], ["mask"], name="/layer/Slice"),
        helper.make_node("Add", ["scores", "mask"], ["masked"], name="/layer/Add"),
        helper.make_node("Softmax", ["masked"], ["weights"], name="/layer/Softmax"),
        helper.make_node("MatMul", ["weights", "x"], ["y"], name="/layer/MatMul_3"),
    ]
    return model_of(nodes, {"x": (onnx.TensorProto.FLOAT, ["batch", "sequence", 8])}, ["y"], stored)


WINDOW = 12  # tokens: more than those of a drawn example


def windows_model() -> ModelProto:
    """Sums over windows of features [row, token, feature], scaled by a speaker [row, feature]."""
    nodes = [
        helper.make_node("Transpose", ["mel"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["turned", "kernel"], ["mixed"], kernel_shape=[WINDOW], group=4),
        helper.make_node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1]),
        helper.make_node("Unsqueeze", ["speaker", "one"], ["column"]),
        helper.make_node("Mul", ["back", "column"], ["y"]),
    ]
    inputs = {
        "mel": (onnx.TensorProto.FLOAT, ["batch", "time", 4]),
        "speaker": (onnx.TensorProto.FLOAT, ["batch", 4]),
    }
    stored = {"kernel": np.ones((4, 1, WINDOW), np.float32), "one": np.array([1])}
    return model_of(nodes, inputs, ["y"], stored)
