"""The graph of an ONNX file as a module, with one submodule for each node, so that a report names the node."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

import onnx
import torch
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from torch import Tensor, nn

from orderproof.errors import SubjectError
from orderproof.models.onnx_file.operation import Operation, function_of
from orderproof.models.onnx_file.values import Value, as_tensor, numbers
from orderproof.number_limits import ORDINARY_LIMIT

MAX_NUMBERS = 64  # a list of integers up to this length is a shape, or a list of axes


class OnnxNode(nn.Module):
    """One node: a function of its inputs."""

    def __init__(self, node: NodeProto, version: int) -> None:
        super().__init__()
        self.operator, self.version = node.op_type, version
        self.input_names, self.output_names = tuple(node.input), tuple(node.output)
        self.attributes = {attribute.name: _attribute(attribute) for attribute in node.attribute}
        function = function_of(node.domain, node.op_type)
        assert function is not None, node.op_type  # `_check_operators` refused it
        self.function = function

    def forward(self, real: torch.dtype, *inputs: Value | None) -> list[Value]:
        """The outputs of the node."""
        call = Operation(self.operator, inputs, self.attributes, self.version, self.output_names, real)
        found = self.function(call)
        return list(found) if isinstance(found, list | tuple) else [found]  # type: ignore[list-item]


class OnnxModule(nn.Module):
    """A graph: its tensors as parameters and buffers, its nodes as submodules.

    A file does not say which numbers are weights. A floating-point tensor is a parameter, over all of whose values a
    proof holds, unless it looks like a constant of the program: one number, a mask (two values, numbers that are large
    or infinite), or a triangle of zeros. Integers and constants keep their values.
    """

    def __init__(self, model: ModelProto, name: str) -> None:
        super().__init__()
        graph, version = model.graph, _version(model)
        _check_operators(model, name)
        self.register_buffer("real", torch.zeros(()), persistent=False)
        self.numbers: dict[str, Value] = {}
        self.places: dict[str, tuple[nn.Module, str]] = {}  # of tensors: the module and the name that hold each
        for initializer in graph.initializer:
            self._hold(initializer.name, tensor_of(initializer))
        self.steps: list[OnnxNode] = []
        for node in graph.node:
            if node.op_type == "Constant":
                self._hold(node.output[0], _constant(node))
            else:
                self.steps.append(self._step(OnnxNode(node, version), _path(node)))
        stored = {initializer.name for initializer in graph.initializer}
        self.inputs = [entry for entry in input_entries(model) if entry[0] not in stored]
        self.input_names = tuple(name for name, _, _ in self.inputs)
        self.output_names = tuple(entry.name for entry in graph.output)

    def _hold(self, name: str, tensor: Tensor) -> None:
        if tensor.dtype in (torch.int32, torch.int64) and tensor.ndim <= 1:
            if tensor.numel() <= MAX_NUMBERS:
                self.numbers[name] = numbers(tensor.tolist())
                return
        *folders, last = (part or "_" for part in name.strip("/").replace("/", ".").split("."))
        place: nn.Module = self
        for folder in folders:
            key = f"{folder}_" if hasattr(place, folder) and folder not in place._modules else folder
            if key not in place._modules:
                place.add_module(key, nn.Module())
            place = place.get_submodule(key)
        while hasattr(place, last):
            last = f"{last}_"
        if is_weight(tensor):
            place.register_parameter(last, nn.Parameter(tensor, requires_grad=False))
        else:
            place.register_buffer(last, tensor)
        self.places[name] = (place, last)

    def _step(self, step: OnnxNode, path: str) -> OnnxNode:
        while hasattr(self, path):
            path = f"{path}_"
        self.add_module(path, step)
        return step

    def forward(self, *inputs: Tensor) -> dict[str, Tensor]:
        """The outputs of the graph by name. Raises `ValueError` for a size that the file excludes."""
        for (name, _, sizes), x in zip(self.inputs, inputs, strict=True):
            for axis, size in enumerate(sizes):
                if isinstance(size, int) and x.shape[axis] != size:
                    raise ValueError(
                        f"axis {axis} of input {name!r} has {size} entries in the file; got {x.shape[axis]}"
                    )
        real = self.real.dtype
        values: dict[str, Value] = dict(self.numbers)
        values |= {name: getattr(*place) for name, place in self.places.items()}
        values |= dict(zip(self.input_names, inputs, strict=True))
        for step in self.steps:
            found = step(real, *(values[name] if name else None for name in step.input_names))
            values |= {name: value for name, value in zip(step.output_names, found, strict=False) if name}
        return {name: as_tensor(values[name]) for name in self.output_names if name in values}

    @property
    def weight_count(self) -> int:
        """The number of tensors that count as weights."""
        return sum(1 for _ in self.parameters())


def is_weight(tensor: Tensor) -> bool:
    """True if a tensor counts as weights, which a proof may not read; see `OnnxModule`."""
    if not tensor.is_floating_point() or tensor.ndim == 0 or tensor.numel() < 2:
        return False
    if not bool(tensor.isfinite().all()) or float(tensor.abs().max()) >= ORDINARY_LIMIT:
        return False
    square = tensor.squeeze()
    if square.ndim < 2:
        return True
    two_values = bool(((tensor == tensor.min()) | (tensor == tensor.max())).all())
    size = square.shape[-1]
    triangle = square.shape[-2] == size and any(not bool(half.any()) for half in (square.triu(1), square.tril(-1)))
    return not two_values and not triangle


def tensor_of(proto: TensorProto) -> Tensor:
    """A stored tensor. Raises `SubjectError` for a type of numbers that is not supported."""
    array = numpy_helper.to_array(proto)
    if proto.data_type == TensorProto.BFLOAT16:
        return torch.from_numpy(array.astype("float32")).to(torch.bfloat16)
    try:
        return torch.from_numpy(array.copy())
    except TypeError as error:
        raise SubjectError(f"tensor {proto.name!r} has numbers of type {array.dtype}, which torch lacks") from error


def _attribute(attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, TensorProto):
        return tensor_of(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return [x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in value] if _is_list(value) else value


def _is_list(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str)


def _constant(node: NodeProto) -> Tensor:
    (attribute,) = node.attribute
    value = _attribute(attribute)
    if isinstance(value, Tensor):
        return value
    if isinstance(value, str) or (_is_list(value) and value and isinstance(value[0], str)):
        raise SubjectError(f"node {node.name!r} is a constant text")
    return torch.tensor(value)


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


def _version(model: ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)


def _check_operators(model: ModelProto, name: str) -> None:
    """Raise `SubjectError` for operators that have no function."""
    unknown = Counter(
        node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        for node in model.graph.node
        if node.op_type != "Constant" and function_of(node.domain, node.op_type) is None
    )
    if unknown:
        listed = ", ".join(f"{operator} ({count})" for operator, count in unknown.most_common(8))
        raise SubjectError(f"{name}: these operators of ONNX have no translation to torch: {listed}")


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
