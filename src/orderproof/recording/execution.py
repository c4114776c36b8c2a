"""Run a captured graph on tensors, in its own precision or entirely in float64.

In float64 every floating tensor and every floating dtype named in the graph becomes float64, so that a
model which computes its softmax or its angles in float32 runs in float64 throughout. A rounding difference
then falls by about 2**-29; a dependence does not.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Container, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from orderproof.recording.captured_graph import CapturedGraph


def execute_nodes(
    captured: CapturedGraph,
    inputs: tuple[Tensor, ...],
    *,
    float64: bool = False,
    state: Mapping[str, Tensor] | None = None,
    start: Tensor | None = None,
) -> Iterator[tuple[Node, Any]]:
    """Every node with its value, in graph order. `start` replaces the value of the node the graph is cut at."""
    values = captured.values if state is None else state
    by_input = dict(zip(captured.inputs, inputs, strict=True))
    last = last_uses(captured.graph, set(captured.outputs.values()))
    cut = None if start is None else captured.start
    env: dict[Node, Any] = {}
    for node in captured.graph.nodes:
        if node.op == "placeholder":
            if node.name in captured.state:
                name = captured.state[node.name]
                env[node] = (
                    captured.in_float64(name)
                    if float64 and state is None
                    else _to_float64(values[name], float64=float64)
                )
            else:
                env[node] = _to_float64(by_input.get(node), float64=float64)
        elif cut is not None and node is cut:
            env[node] = _to_float64(start, float64=float64)
        elif node.op == "call_function" and "_assert_" not in str(node.target):
            env[node] = _call(node, env, float64=float64)
        if node in env:
            yield node, env[node]
        for n in last.get(node, ()):
            env.pop(n, None)


def execute(
    captured: CapturedGraph,
    inputs: tuple[Tensor, ...],
    *,
    float64: bool = False,
    state: Mapping[str, Tensor] | None = None,
    start: Tensor | None = None,
) -> dict[str, Tensor]:
    """The outputs by name."""
    wanted = set(captured.outputs.values())  # fewer than names if a model returns a tensor twice
    with torch.no_grad():
        found = {
            node: value
            for node, value in execute_nodes(captured, inputs, float64=float64, state=state, start=start)
            if node in wanted
        }
    return {name: found[node] for name, node in captured.outputs.items()}


def last_uses(graph: Graph, kept: Container[Node]) -> dict[Node, list[Node]]:
    """The nodes whose last use is a node, by that node; without those that are kept."""
    last: dict[Node, Node] = {}
    for node in graph.nodes:
        for n in node.all_input_nodes:
            last[n] = node
    result: dict[Node, list[Node]] = {}
    for n, user in last.items():
        if n not in kept and user.op != "output":
            result.setdefault(user, []).append(n)
    return result


def _to_float64(value: Any, *, float64: bool) -> Any:
    if float64 and isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex()):
        return widened(value)
    return value


def _call(node: Node, env: dict[Node, Any], *, float64: bool) -> Any:
    args = torch.fx.map_arg(node.args, env.__getitem__)
    kwargs = torch.fx.map_arg(node.kwargs, env.__getitem__)
    if float64:
        if node.target is torch.ops.aten.view.dtype:
            raise ValueError("the bytes of a tensor are read as another dtype, which float64 has no equivalent of")
        args = tuple(_float64_dtype(x) for x in args)
        kwargs = {k: _float64_dtype(v) for k, v in kwargs.items()}
    if node.target is operator.getitem:
        return operator.getitem(*args)
    result = node.target(*args, **kwargs)  # type: ignore[operator]
    if float64 and isinstance(result, Tensor) and result.is_floating_point() and result.dtype is not torch.float64:
        return result.double()  # a factory such as arange or zeros, with the default dtype
    return result


def _float64_dtype(x: Any) -> Any:
    return torch.float64 if isinstance(x, torch.dtype) and x.is_floating_point else x


def widened(x: Tensor) -> Tensor:
    """The tensor in float64, or in complex128."""
    return x.to(torch.complex128) if x.is_complex() else x.double()


def differing_parts(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors; of complex ones, the parts (real or imaginary) that differ most."""
    if not (first.is_complex() or second.is_complex()):
        return first, second
    pairs = [[part(widened(x)) for x in (first, second)] for part in (torch.real, torch.imag)]
    a, b = max(pairs, key=lambda pair: float((pair[0] - pair[1]).abs().nan_to_num().max()))
    return a, b


def relative_difference(first: Tensor, second: Tensor) -> float:
    """The largest difference of two tensors, relative to their largest finite value.

    Infinite if one is infinite or NaN where the other differs.
    """
    if first.numel() == 0:
        return 0.0
    a, b = widened(first), widened(second)
    sizes = [float(x.abs().max()) for x in (a, b)]
    if all(map(math.isfinite, sizes)):  # of most tensors, in a fourth of the time
        return float((a - b).abs().max()) / (max(sizes) or 1.0)
    same = (a == b) | (a.isnan() & b.isnan())
    if bool(same.all()):
        return 0.0
    gap = (a - b).abs()
    gap = torch.where(same, torch.zeros_like(gap), gap)
    if not bool(gap.isfinite().all()):
        return float("inf")
    finite = torch.cat([a[a.isfinite()].reshape(-1), b[b.isfinite()].reshape(-1)])
    scale = float(finite.abs().max()) if finite.numel() else 1.0
    return float(gap.max()) / (scale or 1.0)
