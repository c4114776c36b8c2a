"""The size of the smallest number in a recording that may be meant as a mask, where it is too small to count as one.

A mask of -10000 hides scores that are small compared with 10000. A second proof states that number as the one from
which numbers mask, and its assumption names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.fx import Node

from orderproof.number_limits import LEAST_MASK, MASKING_THRESHOLD
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.walks.operation import operator_of

_WITH_MASKS = {
    "masked_fill", "where", "full", "full_like", "new_full", "fill", "scalar_tensor", "constant_pad_nd", "mul", "add",
    "sub", "rsub", "clamp", "clamp_min", "maximum",
}  # fmt: skip


def least_mask(graphs: Sequence[OpenGraph]) -> float | None:
    """The size of the smallest mask of a call's recordings; None if all masks are large, or small scores."""
    sizes = [size for graph in graphs for size in _sizes(graph) if LEAST_MASK <= size < MASKING_THRESHOLD]
    return min(sizes, default=None)


def _sizes(graph: OpenGraph) -> Iterator[float]:
    """The sizes of the numbers that operators fill in, add or multiply with, and of the least stored ones."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and operator_of(node) in _WITH_MASKS:
            numbers = [x for x in (*node.args, *node.kwargs.values()) if not isinstance(x, Node)]
            yield from (abs(float(x)) for x in numbers if type(x) in (int, float))
    for tensor in graph.values.values():
        if tensor.is_floating_point() and tensor.numel() and not tensor.is_meta:
            yield -float(tensor.min())
