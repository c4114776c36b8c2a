"""The graph of an ONNX file as a module, with one submodule for each node, so that a report names the node."""

from __future__ import annotations

from collections import Counter

import torch
from onnx import GraphProto, ModelProto
from torch import Tensor

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.graph import OnnxGraph, graphs_of, nodes_of
from orderproof.models.onnx_file.operation import function_of
from orderproof.models.onnx_file.values import Value, as_tensor


class OnnxModule(OnnxGraph):
    """The graph of a file. Raises `SubjectError` for operators without a translation."""

    real: Tensor

    def __init__(self, model: ModelProto, name: str) -> None:
        _check_operators(model, name)
        _check_names(model.graph, set(), name)
        super().__init__(model.graph, _version(model))
        self.register_buffer("real", torch.zeros(()), persistent=False)
        self.sizes = {key: sizes for key, _, sizes in input_entries(model)}

    def forward(self, *inputs: Value) -> dict[str, Tensor]:  # type: ignore[override]
        """The outputs of the graph by name. Raises `ValueError` for a size that the file excludes."""
        for name, x in zip(self.input_names, inputs, strict=True):
            for axis, size in enumerate(self.sizes[name]):
                if isinstance(size, int) and x.shape[axis] != size:
                    raise ValueError(
                        f"axis {axis} of input {name!r} has {size} entries in the file; got {x.shape[axis]}"
                    )
        found = super().forward(self.real.dtype, {}, *inputs)
        return {name: as_tensor(x) for name, x in zip(self.output_names, found, strict=True) if x is not None}

    @property
    def weight_count(self) -> int:
        """The number of tensors that count as weights."""
        return sum(1 for _ in self.parameters())


def _version(model: ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)


def _check_operators(model: ModelProto, name: str) -> None:
    """Raise `SubjectError` for operators that have no function."""
    unknown = Counter(
        node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        for node in nodes_of(model.graph)
        if node.op_type != "Constant" and function_of(node.domain, node.op_type) is None
    )
    if unknown:
        listed = ", ".join(f"{operator} ({count})" for operator, count in unknown.most_common(8))
        raise SubjectError(f"{name}: these operators of ONNX have no translation to torch: {listed}")


def _check_names(graph: GraphProto, around: set[str], name: str) -> None:
    """Raise `SubjectError` for a node that reads what no node before it gives, and for two that give the same."""
    known = around | {entry.name for entry in (*graph.input, *graph.initializer)} | {""}
    given = set[str]()
    for node in graph.node:
        what = f"{name}: node {node.name or node.output[0]!r} ({node.op_type})"
        if missing := [x for x in node.input if x not in known]:
            raise SubjectError(f"{what} reads {missing[0]!r}, which no node before it gives")
        for inner in graphs_of(node).values():
            _check_names(inner, known, name)
        if double := given & set(node.output):
            raise SubjectError(f"{what} gives {min(double)!r}, which a node before it gives too")
        given |= set(node.output) - {""}
        known |= given
    if missing := [entry.name for entry in graph.output if entry.name not in known]:
        raise SubjectError(f"{name}: no node gives the output {missing[0]!r}")


def input_entries(model: ModelProto) -> list[tuple[str, int, list[int | str]]]:
    """The inputs: name, type of numbers, and sizes, a name for a size that is open."""
    stored = {initializer.name for initializer in model.graph.initializer}
    found = []
    for entry in model.graph.input:
        if entry.name not in stored:
            dims = entry.type.tensor_type.shape.dim
            sizes: list[int | str] = [
                d.dim_value if d.HasField("dim_value") else d.dim_param or f"{entry.name}.{k}"
                for k, d in enumerate(dims)
            ]
            found.append((entry.name, entry.type.tensor_type.elem_type, sizes))
    return found
