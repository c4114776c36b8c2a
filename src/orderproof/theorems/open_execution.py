"""Run an open graph on tensors of given sizes."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.errors import CaptureError
from orderproof.logic.rewriting import evaluate
from orderproof.logic.terms import Term, as_term
from orderproof.recording.arguments import map_leaves
from orderproof.recording.execution import last_uses
from orderproof.recording.loop_operators import LOOP_STACK, LOOP_STATE, loop_body, loop_count, loop_index
from orderproof.recording.open_recording import OpenGraph
from orderproof.recording.open_sizes import OpaqueNumber

NOTHING: Mapping[int, Tensor] = MappingProxyType({})


def execute_open(
    graph: OpenGraph, inputs: Sequence[Tensor], sizes: Mapping[str, int], replaced: Mapping[int, Tensor] = NOTHING
) -> dict[str, Tensor] | None:
    """The outputs of an open graph by name; None if the call would take another branch.

    `replaced` has tensors that are read in place of stored ones, by the memory of these.

    Raises:
        CaptureError: The graph contains a number that is not known.

    """
    for condition in graph.conditions:
        if not condition.functions and not evaluate(condition, sizes, {}):
            return None
    values: dict[Node, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.graph.nodes if replaced else ():
        if node.op == "placeholder" and node not in values:
            stored = graph.values[graph.state[node.name]]
            values[node] = replaced.get(stored.data_ptr(), stored)
    nodes = list(graph.graph.nodes)
    with torch.no_grad():
        if any(node.target is LOOP_STATE for node in nodes):  # whose nodes are not computed in graph order
            _run(graph, nodes, values, dict(sizes), {})
            nodes = []
        last = last_uses(graph.graph, {*graph.outputs.values(), *(question.node for question in graph.questions)})
        for question in graph.questions:  # in graph order: another branch ends at the first other answer
            if question.node not in values:
                end = nodes.index(question.node) + 1
                _run(graph, nodes[:end], values, dict(sizes), last)
                nodes = nodes[end:]
            if bool(values[question.node]) is not question.answer:
                return None
        _run(graph, nodes, values, dict(sizes), last)
    return {name: values[node] for name, node in graph.outputs.items()}


def _run(
    graph: OpenGraph, nodes: Sequence[Node], values: dict[Node, Any], sizes: dict[str, int],
    last: Mapping[Node, Sequence[Node]],
) -> None:  # fmt: skip
    """Compute the values of nodes in graph order; forget those whose last use is a node."""
    in_loops: set[Node] = set()
    for node in nodes:
        if node in in_loops:
            continue
        if node.target is LOOP_STATE:
            body, end = loop_body(graph.graph, node)
            _run_loop(graph, body, end, values, sizes)
            in_loops |= {*body, end}
        elif node.op == "placeholder" and node not in values:
            values[node] = graph.values[graph.state[node.name]]
        elif node.op == "call_function":
            values[node] = (
                _stacked(graph, node, values, sizes) if node.target is LOOP_STACK else _value(node, values, sizes)
            )
        for used in last.get(node, ()):
            values.pop(used, None)


def _stacked(graph: OpenGraph, node: Node, values: Mapping[Node, Any], sizes: Mapping[str, int]) -> Tensor:
    end, value, dim, _, _ = node.args
    found = values[end][value]  # type: ignore[index]
    if found:
        return torch.stack(found, dim)  # type: ignore[arg-type]
    return torch.empty([evaluate(size, sizes, {}) for size in graph.shape(node)], dtype=node.meta["val"].dtype)


def _value(node: Node, values: Mapping[Node, Any], sizes: Mapping[str, int]) -> Any:
    arguments, options = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
    arguments, options = map_leaves((Term, OpaqueNumber), lambda x: _number(x, sizes), (arguments, options))
    if node.target is operator.getitem:
        return arguments[0][arguments[1]]
    return node.target(*arguments, **options)  # type: ignore[operator]


def _number(value: Term | OpaqueNumber, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, OpaqueNumber):
        try:
            return value.evaluated(sizes)
        except TypeError:
            raise CaptureError(f"the number {value} is not known") from None
    if value.functions:
        raise CaptureError(f"the number {value} is not known")
    return evaluate(value, sizes, {})


def _run_loop(
    graph: OpenGraph, body: Sequence[Node], end: Node, values: dict[Node, Any], sizes: Mapping[str, int]
) -> None:
    """Compute the states after a loop, with the values of stacked nodes in each iteration."""
    states = [node for node in body if node.target is LOOP_STATE and loop_index(node) is loop_index(end)]
    rest = [node for node in body if node not in states]
    following: Any = end.args[1]
    current = [values[node.args[0]] for node in states]  # type: ignore[index]
    stacked: dict[Any, list[Tensor]] = {user.args[1]: [] for user in end.users if user.target is LOOP_STACK}
    for step in range(int(evaluate(as_term(loop_count(end)), sizes, {}))):
        own = {**values, **dict(zip(states, current, strict=True))}
        _run(graph, rest, own, {**sizes, str(loop_index(end)): step}, {})
        current = [own[node] for node in following]
        for node, found in stacked.items():
            found.append(own[node])
    values[end] = {**dict(enumerate(current)), **stacked}
