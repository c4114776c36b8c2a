"""The same model without order: the constants of an entry map made uniform along the token axis.

At each entry the constant operand C is replaced by C read at one index (0, unless another is asked for) of every
token-length axis at once (a visible mask, one angle, a distance of zero) and repeated. Weights are not touched: the
graph is. The result is free along those axes by its structure, so a proof about it needs no value of any parameter.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.fx import Node

from orderproof.prover.capture import Captured
from orderproof.prover.rule import Break

_SLICE = torch.ops.aten.slice.Tensor
_EXPAND = torch.ops.aten.expand.default


def can_be_uniform(found: Break) -> bool:
    """Whether a break is a constant that this module knows how to make uniform."""
    return found.constant and (found.operand is not None or found.argument == "is_causal")


def make_uniform(captured: Captured, breaks: Iterable[Break], *, place: int = 0) -> tuple[Captured, int]:
    """A copy of the graph with the operands at these breaks made uniform, and how many there were.

    ``place``: the token whose values all others get.
    """
    result = captured.copy()
    by_name = {n.name: n for n in result.graph.nodes}
    made: dict[tuple[str, tuple[int, ...]], Node] = {}
    count = 0
    for found in breaks:
        if not can_be_uniform(found):
            continue
        count += 1
        node = by_name[found.node.name]
        if found.operand is None:
            _see_everything(node)
            continue
        key = (found.operand.name, found.dims)
        operand = by_name[found.operand.name]
        if key not in made:
            made[key] = _repeat_one(operand, found.dims, place)
        node.replace_input_with(operand, made[key])
    result.graph.lint()
    return result, count


def _see_everything(node: Node) -> None:
    """Turn the causal flag of an attention off."""
    if len(node.args) > 5:
        node.update_arg(5, False)
    else:
        node.update_kwarg("is_causal", False)


def _repeat_one(operand: Node, dims: tuple[int, ...], index: int) -> Node:
    """operand[..., index, ...] along `dims`, expanded back."""
    graph = operand.graph
    value = operand.meta["val"]
    shape = list(value.shape)
    node = operand
    place = operand
    while place.next.op == "placeholder":  # a parameter: insert after the last placeholder
        place = place.next
    for d in dims:
        shape[d] = 1
        with graph.inserting_after(place):
            node = place = graph.call_function(_SLICE, (node, d, index, index + 1))
        node.meta = dict(operand.meta, val=torch.empty(shape, dtype=value.dtype, device="meta"))
    with graph.inserting_after(place):
        node = graph.call_function(_EXPAND, (node, list(value.shape)))
    node.meta = dict(operand.meta, val=torch.empty(value.shape, dtype=value.dtype, device="meta"))
    return node
