"""Comparisons of a tensor with itself: where both operands hold the same element, the result is known.

A mask of documents is `document[:, :, None] == document[:, None, :]`, and its diagonal is true for every document. So a
query sees itself, and no row of scores is masked wholly.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.fx import Node

from orderproof.diagnosis.domain.values import BoolArray

OF_EQUAL = {  # by operator: its result on two equal integers
    **dict.fromkeys(("eq", "le", "ge", "less_equal", "greater_equal"), True),
    **dict.fromkeys(("ne", "lt", "gt", "less", "greater", "not_equal"), False),
}
MOST_ELEMENTS = 1 << 22
_MOVEMENTS = frozenset({
    "alias", "clone", "contiguous", "detach", "expand", "flatten", "movedim", "permute", "repeat", "reshape", "select",
    "slice", "squeeze", "t", "transpose", "unflatten", "unsqueeze", "view", "_unsafe_view",
})  # fmt: skip


def compared_with_itself(node: Node) -> BoolArray | None:
    """The elements [as the result] at which a comparison reads one element of one tensor twice; None if none."""
    operands = [x for x in node.args[:2] if isinstance(x, Node)]
    values = [x.meta.get("val") for x in operands]
    if len(operands) != 2 or not all(isinstance(x, Tensor) and _is_small_integer(x) for x in values):
        return None
    (one, first), (other, second) = map(_indices, operands)
    if one is not other:
        return None
    found: BoolArray = (first == second).numpy()
    return found if found.any() else None


def _is_small_integer(x: Tensor) -> bool:
    """A number that is not NaN equals itself; only integers and booleans are never NaN."""
    return not (x.is_floating_point() or x.is_complex()) and x.numel() <= MOST_ELEMENTS


def _indices(node: Node) -> tuple[Node, Tensor]:
    """The tensor that a node only rearranges, and the index into it of each element of the node."""
    steps = []
    while _name(node) in _MOVEMENTS and all(isinstance(x, Node) == (k == 0) for k, x in enumerate(node.args)):
        steps.append(node)
        (node,) = node.all_input_nodes
    shape = [int(size) for size in node.meta["val"].shape]
    indices = torch.arange(node.meta["val"].numel()).view(shape)
    for step in reversed(steps):
        indices = step.target(indices, *step.args[1:], **step.kwargs)  # type: ignore[operator]
    return node, indices


def _name(node: Node) -> str:
    parts = str(node.target).split(".")
    return parts[1] if node.op == "call_function" and parts[0] == "aten" else ""
