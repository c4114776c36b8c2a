"""Run an open graph on tensors of given sizes."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.utils import _pytree as pytree

from orderproof.errors import CaptureError
from orderproof.prover.logic.rewriting import evaluate
from orderproof.prover.logic.terms import Term
from orderproof.prover.recording.open_recording import OpenGraph
from orderproof.prover.recording.open_sizes import OpaqueNumber


def execute_open(graph: OpenGraph, inputs: Sequence[Tensor], sizes: Mapping[str, int]) -> dict[str, Tensor] | None:
    """The outputs of an open graph by name; None if the call would take another branch.

    Raises:
        CaptureError: The graph contains a number that is not known.

    """
    for condition in graph.conditions:
        if not condition.functions and not evaluate(condition, sizes, {}):
            return None
    values = _values(graph, inputs, sizes)
    if any(bool(values[question.node]) is not question.answer for question in graph.questions):
        return None
    return {name: values[node] for name, node in graph.outputs.items()}


def _values(graph: OpenGraph, inputs: Sequence[Tensor], sizes: Mapping[str, int]) -> dict[Node, Any]:
    values: dict[Node, Any] = dict(zip(graph.inputs, inputs, strict=True))

    def number(value: Any) -> Any:
        if isinstance(value, OpaqueNumber) or (isinstance(value, Term) and value.functions):
            raise CaptureError(f"the number {value} is not known")
        return evaluate(value, sizes, {}) if isinstance(value, Term) else value

    with torch.no_grad():
        for node in graph.graph.nodes:
            if node.op == "placeholder" and node not in values:
                values[node] = graph.values[graph.state[node.name]]
            elif node.op == "call_function":
                arguments, options = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
                arguments, options = pytree.tree_map(number, (arguments, options))
                if node.target is operator.getitem:
                    values[node] = arguments[0][arguments[1]]
                else:
                    values[node] = node.target(*arguments, **options)
    return values
