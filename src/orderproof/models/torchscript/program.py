"""The graph of a method or function of TorchScript as plain steps, which can be copied."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orderproof.recording.source import Line, is_model_code

# A script has one place, a trace the frames of a call, from the innermost on.
_SCRIPTED = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
_TRACED = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): ", re.MULTILINE)
_SERIALIZED = "Serialized   File"  # a place in the code of the archive follows


@dataclass(frozen=True)
class Step:
    """One node of a graph.

    Attributes:
        kind: Its operator, as "aten::add" or "prim::If".
        overload: The operator of torch, for a node that has tensors among its arguments; None for others.
        inputs: The names of its inputs.
        outputs: The names of its outputs.
        name: Of the attribute, the method or the function that it reads or calls, or the class of which it makes one.
        blocks: Its branches, or the body of its loop.
        constant: The value of a constant.
        line: The line of the model; None for code of torch.

    """

    kind: str
    overload: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""
    blocks: tuple[Block, ...] = ()
    constant: Any = None
    line: Line | None = None


@dataclass(frozen=True)
class Block:
    """Steps one after the other, with inputs and outputs."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]


def block_of(graph: Any, function: str) -> Block:
    """The steps of a graph, or of a block in it, of a function of this name."""
    return Block(
        _names(graph.inputs()), tuple(_step(node, function) for node in graph.nodes()), _names(graph.outputs())
    )


def steps_of(block: Block) -> Iterator[Step]:
    """The steps of a block and of the blocks in it."""
    for step in block.steps:
        yield step
        for inner in step.blocks:
            yield from steps_of(inner)


def _names(values: Any) -> tuple[str, ...]:
    return tuple(value.debugName() for value in values)


def _step(node: Any, function: str) -> Step:
    constant, name = None, node.s("name") if "name" in node.attributeNames() else ""
    if node.kind() == "prim::Constant":
        if node.output().type().kind() == "FunctionType":
            name = node.output().type().annotation_str
        else:
            constant = _number(node.output().toIValue())
    if node.kind() == "prim::CreateObject":
        name = node.output().type().annotation_str
    return Step(
        node.kind(), _overload(node), _names(node.inputs()), _names(node.outputs()), name,
        tuple(block_of(block, function) for block in node.blocks()), constant, _line(node, function),
    )  # fmt: skip


def _number(value: Any) -> Any:
    """A constant; whole numbers that a trace keeps in tensors are numbers, since sizes are computed with them."""
    is_whole = isinstance(value, Tensor) and value.dim() == 0 and not (value.is_floating_point() or value.is_complex())
    return value.item() if is_whole else value


def _overload(node: Any) -> Any:
    """The operator of torch of a node; None for one that is no operator of tensors."""
    text = node.schema()
    if not node.kind().startswith("aten::") or text == "(no schema)":
        return None
    schema = torch._C.parse_schema(text)
    packet = getattr(torch.ops.aten, node.kind().removeprefix("aten::"), None)
    found: Any = getattr(packet, schema.overload_name or "default", None)
    return found


def _line(node: Any, function: str) -> Line | None:
    """The line of a node, if it is code of the model: a file may name any other one, whose text is not shown."""
    text = node.sourceRange().partition(_SERIALIZED)[0]
    for match in (*_SCRIPTED.finditer(text), *_TRACED.finditer(text)):
        file = match["file"]
        if "/torch/jit/" in file:  # the frames around are those that trace the model
            return None
        if file.endswith(".py") and "/torch/" not in file and is_model_code(file):
            return file, function, int(match["line"])
    return None
