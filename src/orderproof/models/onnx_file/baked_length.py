"""A length or one row that an export kept from its example: the node that holds it, where the file leaves it open."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from orderproof.models.onnx_file.graph import OnnxNode
from orderproof.models.onnx_file.module import OnnxModule
from orderproof.models.onnx_file.values import integers

MAX_LENGTH = 4096  # [tokens] of an example that is looked for
MAX_SECONDS = 10.0
TRIED = {2**k for k in range(3, 13)}  # of models that need a number of frames
Call = Callable[[int], object]  # of the graph, with a number of tokens
Shapes = dict[str, tuple[int, ...]]  # of the tensors of a call, by their names


def other_length(graph: OnnxModule, call: Call, refused: int) -> tuple[int | None, str]:
    """A length that a graph takes, which refuses this one; and a text if it is the only one. None if none is found."""
    began, (failed, before) = time.perf_counter(), _shapes(graph, call, refused)
    for length in sorted(_numbers(graph) | TRIED) if failed is not None else ():
        if time.perf_counter() - began > MAX_SECONDS:
            break
        error, shapes = _shapes(graph, call, length)
        if error is not None:
            continue
        if _shapes(graph, call, length + 1)[0] is None:
            return length, ""
        assert failed is not None
        return length, (
            f"node {_name(graph, _holder(graph, failed, before, shapes, length))} keeps the length {length} of the "
            f"example of its export, so a call with {refused} tokens fails, though the file leaves the length open: "
            "take the size of a tensor where the code takes a number, and export with a dynamic axis; "
            f"--length {length} audits this length"
        )
    return None, ""


def kept_row(graph: OnnxModule, call: Call, refused: int) -> str:
    """A text if a graph that refuses a number of rows takes one row; empty if not."""
    failed, _ = _shapes(graph, call, refused)
    if failed is None or refused == 1 or _shapes(graph, call, 1)[0] is not None:
        return ""
    return (
        f"node {_name(graph, failed)} fails for {refused} rows and not for one, though the file leaves their number "
        "open: take the size of a tensor where the code takes a number, and export an example of two rows; --shape "
        "audits one row"
    )


def _shapes(graph: OnnxModule, call: Call, length: int) -> tuple[OnnxNode | None, Shapes]:
    """The node at which a call fails, and the shapes of the tensors before it."""
    shapes: Shapes = {}
    running: list[OnnxNode] = []

    def enter(node: Any, given: Any) -> None:
        running[:] = [node]
        pairs = zip(node.input_names, given[1:], strict=True)
        shapes.update({name: tuple(x.shape) for name, x in pairs if x is not None})

    def leave(node: Any, given: Any, found: Any) -> None:
        del given
        shapes.update({name: tuple(x.shape) for name, x in zip(node.output_names, found, strict=False) if name})

    hooks = [step.register_forward_pre_hook(enter) for step in graph.steps]
    hooks += [step.register_forward_hook(leave) for step in graph.steps]
    try:
        with torch.no_grad():
            call(length)
    except Exception:  # noqa: BLE001 - an operator may refuse its inputs in any way
        return (running[0] if running else None), shapes
    finally:
        for hook in hooks:
            hook.remove()
    return None, shapes


def _numbers(graph: OnnxModule) -> set[int]:
    """The numbers of the graph that may be a length."""
    found = {n for value in graph.numbers.values() for n in integers(value) if type(n) is int}
    found |= {n for tensor in (*graph.parameters(), *graph.buffers()) for n in tensor.shape}
    return {n for n in found if 1 < n <= MAX_LENGTH}


def _holder(graph: OnnxModule, failed: OnnxNode, before: Shapes, after: Mapping[str, Any], length: int) -> OnnxNode:
    """The node that gives a tensor of this length in both calls, from inputs that have no such axis."""
    makers = {name: step for step in graph.steps for name in step.output_names}

    def keeps(name: str) -> bool:
        return name in makers and length in before.get(name, ()) and before[name] == after.get(name)

    node = failed
    while kept := [name for name in node.input_names if keeps(name)]:
        node = makers[kept[0]]
    return node


def _name(graph: OnnxModule, node: OnnxNode) -> str:
    return repr(next(path for path, part in graph.named_modules() if part is node))
