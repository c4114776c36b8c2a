"""The graph of an ONNX file, or of a branch in it, as a module with one submodule for each node."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch
from onnx import AttributeProto, GraphProto, NodeProto
from torch import Tensor, nn

from orderproof.errors import first_line
from orderproof.models.onnx_file.operation import Operation, function_of
from orderproof.models.onnx_file.stored import attribute_of, constant_of, tensor_of
from orderproof.models.onnx_file.values import Value, numbers
from orderproof.models.stored_weights import hold, is_weight

TORCH_REFUSES = (RuntimeError, IndexError)  # numbers without a kernel, indices outside, axes without entries
MAX_NUMBERS = 64  # a list of integers up to this length is a shape, or a list of axes


class OnnxNode(nn.Module):
    """One node: a function of its inputs, and of values around it that its graphs read."""

    def __init__(self, node: NodeProto, version: int) -> None:
        super().__init__()
        self.operator, self.version = node.op_type, version
        self.output_names = tuple(node.output)
        graphs = graphs_of(node)
        self.graph_names = tuple(graphs)
        for name, graph in graphs.items():
            self.add_module(name, OnnxGraph(graph, version))
        self.captured = tuple(sorted({name for graph in graphs.values() for name in free_names(graph)}))
        self.input_names = (*node.input, *self.captured)
        self.attributes = {a.name: attribute_of(a) for a in node.attribute if a.name not in graphs}
        function = function_of(node.domain, node.op_type)
        assert function is not None, node.op_type  # `check_operators` refused it
        self.function = function

    def forward(self, real: torch.dtype, *inputs: Value | None) -> list[Value]:
        """The outputs of the node."""
        own = len(inputs) - len(self.captured)
        around = dict(zip(self.captured, inputs[own:], strict=True))
        graphs: dict[str, Callable[..., list[Value]]] = {
            name: partial(self.get_submodule(name), real, around) for name in self.graph_names
        }
        call = Operation(self.operator, inputs[:own], self.attributes, self.version, self.output_names, real, graphs)
        try:
            found = self.function(call)
        except TORCH_REFUSES as error:
            raise RuntimeError(f"ONNX operator {self.operator} cannot run in torch: {first_line(error)}") from error
        return list(found) if isinstance(found, list | tuple) else [found]  # type: ignore[list-item]


class OnnxGraph(nn.Module):
    """A graph: its tensors as parameters and buffers, its nodes as submodules.

    A file does not say which numbers are weights. A floating-point tensor is a parameter, over all of whose values a
    proof holds, unless it looks like a constant of the program: one number, a mask (two values, numbers that are large
    or infinite), or a triangle of zeros. Integers and constants keep their values.
    """

    def __init__(self, graph: GraphProto, version: int) -> None:
        super().__init__()
        self.numbers: dict[str, Value] = {}
        self.places: dict[str, tuple[nn.Module, str]] = {}  # of tensors: the module and the name that hold each
        for initializer in graph.initializer:
            self._hold(initializer.name, tensor_of(initializer))
        self.steps: list[OnnxNode] = []
        for node in graph.node:
            if node.op_type == "Constant":
                self._hold(node.output[0], constant_of(node))
            else:
                self.steps.append(self._step(OnnxNode(node, version), _path(node)))
        stored = {initializer.name for initializer in graph.initializer}
        self.input_names = tuple(entry.name for entry in graph.input if entry.name not in stored)
        self.output_names = tuple(entry.name for entry in graph.output)

    def _hold(self, name: str, tensor: Tensor) -> None:
        listed = tensor.ndim <= 1 and tensor.numel() <= MAX_NUMBERS
        if listed and (tensor.dtype in (torch.int32, torch.int64) or (tensor.dtype is torch.bool and tensor.ndim == 0)):
            self.numbers[name] = numbers(tensor.tolist())
            return
        path = name.strip("/").replace("/", ".")
        self.places[name] = hold(self, path, tensor, weight=is_weight(tensor))

    def _step(self, step: OnnxNode, path: str) -> OnnxNode:
        while hasattr(self, path):
            path = f"{path}_"
        self.add_module(path, step)
        return step

    def forward(self, real: torch.dtype, around: Mapping[str, Value | None], *inputs: Value) -> list[Value | None]:
        """The outputs, from inputs and values around the graph; None for one that no node gives."""
        values: dict[str, Value | None] = {**around, **self.numbers}
        values |= {name: getattr(*place) for name, place in self.places.items()}
        values |= dict(zip(self.input_names, inputs, strict=True))
        for step in self.steps:
            found = step(real, *(values[name] if name else None for name in step.input_names))
            values |= {name: value for name, value in zip(step.output_names, found, strict=False) if name}
        return [values.get(name) for name in self.output_names]


def graphs_of(node: NodeProto) -> dict[str, GraphProto]:
    """The graphs among the attributes of a node: branches, or the body of a loop."""
    return {a.name: a.g for a in node.attribute if a.type == AttributeProto.GRAPH}


def nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of a graph and of the graphs in it."""
    for node in graph.node:
        yield node
        for inner in graphs_of(node).values():
            yield from nodes_of(inner)


def free_names(graph: GraphProto) -> set[str]:
    """The names that a graph reads and does not define."""
    defined = {entry.name for entry in (*graph.input, *graph.initializer)}
    defined |= {name for node in graph.node for name in node.output}
    read = {name for node in graph.node for name in node.input} | {entry.name for entry in graph.output}
    read |= {name for node in graph.node for inner in graphs_of(node).values() for name in free_names(inner)}
    return read - defined - {""}


def _path(node: NodeProto) -> str:
    """A readable name for a submodule: that of the node, after the module that it was exported from."""
    name = node.name or f"{node.op_type}_{node.output[0]}"
    scopes = next((p.value for p in node.metadata_props if p.key == "pkg.torch.onnx.name_scopes"), "")
    try:
        found = ast.literal_eval(scopes) if scopes else []
    except (SyntaxError, ValueError):
        found = []
    folders = [str(x) for x in found[:-1] if x] if isinstance(found, list) else []
    return "/".join([*folders[-1:], name.strip("/")]).replace(".", "/") or "node"
