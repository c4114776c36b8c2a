"""The same model without token order: constants made uniform along the token axes.

Each constant operand C of an entry map is replaced in the graph by C at one token (0 by default) along all of its
token axes (a visible mask entry, one angle, a distance of zero), broadcast back. Weights do not change. The result is
uniform along those axes by its structure, so a proof about it needs no value of any parameter.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.fx import Node

from orderproof.diagnosis.rule import RelationBreak
from orderproof.recording.captured_graph import CapturedGraph

_SLICE = torch.ops.aten.slice.Tensor
_EXPAND = torch.ops.aten.expand.default


def can_be_uniform(found: RelationBreak) -> bool:
    """True if the break is a constant that can be made uniform."""
    return found.constant and (found.operand is not None or found.argument == "is_causal")


def make_uniform(
    captured: CapturedGraph, breaks: Iterable[RelationBreak], *, token: int = 0
) -> tuple[CapturedGraph, int]:
    """A copy of the graph with the operands at these breaks made uniform, and their number.

    `token`: the token whose values all others get.
    """
    result = captured.copy()
    by_name = {n.name: n for n in result.graph.nodes}
    uniform: dict[tuple[str, tuple[int, ...]], Node] = {}
    count = 0
    for found in breaks:
        if not can_be_uniform(found):
            continue
        count += 1
        result.uniform = (*result.uniform, "is_causal" if found.operand is None else found.operand.name)
        node = by_name[found.node.name]
        result.uniform_at = (*result.uniform_at, node)
        if found.operand is None:
            _disable_causal_flag(node)
            continue
        key = (found.operand.name, found.dims)
        operand = by_name[found.operand.name]
        if key not in uniform:
            uniform[key] = _broadcast_index(operand, found.dims, token)
        node.replace_input_with(operand, uniform[key])
    result.graph.lint()
    return result, count


def _disable_causal_flag(node: Node) -> None:
    """Set is_causal=False in a call of scaled_dot_product_attention."""
    if len(node.args) > 5:
        node.update_arg(5, False)
    else:
        node.update_kwarg("is_causal", False)


def _broadcast_index(operand: Node, dims: tuple[int, ...], index: int) -> Node:
    """operand[..., index, ...] along `dims`, expanded back."""
    graph = operand.graph
    value = operand.meta["val"]
    shape = list(value.shape)
    node = operand
    insertion_point = operand
    while insertion_point.next.op == "placeholder":  # a parameter: insert after the last placeholder
        insertion_point = insertion_point.next
    for d in dims:
        shape[d] = 1
        with graph.inserting_after(insertion_point):
            node = insertion_point = graph.call_function(_SLICE, (node, d, index, index + 1))
        node.meta = dict(operand.meta, val=torch.empty(shape, dtype=value.dtype, device="meta"))
    with graph.inserting_after(insertion_point):
        node = graph.call_function(_EXPAND, (node, list(value.shape)))
    node.meta = dict(operand.meta, val=torch.empty(value.shape, dtype=value.dtype, device="meta"))
    return node
