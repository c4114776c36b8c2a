"""The fingerprint of a graph: SHA-256 of its nodes, their operators, arguments, shapes and dtypes."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.recording.captured_graph import CapturedGraph


def graph_fingerprint(captured: CapturedGraph, needed: set[Node]) -> str:
    """SHA-256 of the needed nodes of a graph; equal graphs have equal fingerprints."""
    records = _records(captured, needed)
    return hashlib.sha256(json.dumps(records, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _records(captured: CapturedGraph, needed: set[Node]) -> list[dict[str, Any]]:
    """The needed nodes as data: one record each."""
    steps = []
    for node in captured.graph.nodes:
        if node.op == "output" or node not in needed:
            continue
        value = node.meta.get("val")
        several = isinstance(value, list | tuple)
        parts = list(value) if several else [value]
        shapes = [list(v.shape) if isinstance(v, Tensor) else None for v in parts]
        dtypes = [str(v.dtype).removeprefix("torch.") if isinstance(v, Tensor) else None for v in parts]
        if node.op == "placeholder":
            stored = captured.state.get(node.name)
            kind = "input" if stored is None else "parameter" if stored in captured.parameters else "buffer"
            operator, args = kind, [stored] if stored is not None else []
        else:
            operator, args = _operator_name(node), [_argument(x) for x in node.args]
        steps.append(
            {
                "node": node.name,
                "operator": operator,
                "args": args,
                "kwargs": {k: _argument(v) for k, v in node.kwargs.items()},
                "shape": shapes if several else shapes[0],
                "dtype": dtypes if several else dtypes[0],
            }
        )
    return steps


def _operator_name(node: Node) -> str:
    return "getitem" if getattr(node.target, "__name__", "") == "getitem" else str(node.target)


def _argument(x: Any) -> Any:
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, list | tuple):
        return [_argument(y) for y in x]
    if isinstance(x, torch.dtype):
        return {"dtype": str(x).removeprefix("torch.")}
    if isinstance(x, torch.device):
        return {"device": "cpu"}  # constants are evaluated on the CPU, independent of the device of the export
    if isinstance(x, float) and not math.isfinite(x):
        return {"float": str(x)}
    if x is None or isinstance(x, bool | int | float | str):
        return x
    return {"other": str(x)}
