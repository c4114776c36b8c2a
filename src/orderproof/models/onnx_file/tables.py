"""The tables that ids of a file read, also those stored as small integers, so that example ids use all their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, NodeProto, helper

from orderproof.models.onnx_file.graph import nodes_of
from orderproof.models.onnx_file.stored import constant_of

# Operators whose output has the ids, or the table, of their first input.
SAME_IDS = frozenset({"Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Slice"})
SAME_TABLE = frozenset({"Cast", "Identity", "QuantizeLinear", "DequantizeLinear", "Mul", "Div", "Dropout"})
NO_TABLE = 2  # rows, for integers that read none


def id_bound(graph: GraphProto, name: str) -> int | None:
    """The number of rows of the smallest table that an input of ids reads; None if it reads none."""
    shapes = _table_shapes(graph)
    same, found = {name}, []
    for node in nodes_of(graph):
        if node.op_type in SAME_IDS and node.input[0] in same:
            same.add(node.output[0])
        found += [shapes[table][axis] for ids, table, axis in _reads(node, shapes) if ids in same]
    return min(found, default=None)


def _table_shapes(graph: GraphProto) -> dict[str, tuple[int, ...]]:
    """The shapes of stored tensors of two or more axes, and of what is computed from each element of them."""
    shapes = {x.name: tuple(x.dims) for x in graph.initializer if len(x.dims) > 1}
    for node in nodes_of(graph):
        if node.op_type == "Constant" and any(a.name == "value" and len(a.t.dims) > 1 for a in node.attribute):
            shapes[node.output[0]] = tuple(constant_of(node).shape)
        elif node.op_type in SAME_TABLE and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
        elif node.op_type == "Transpose" and node.input[0] in shapes:
            shape = shapes[node.input[0]]
            order = next((list(a.ints) for a in node.attribute if a.name == "perm"), range(len(shape))[::-1])
            shapes[node.output[0]] = tuple(shape[d] for d in order)
    return shapes


def _reads(node: NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, str, int]]:
    """The ids, the table and its axis of each look-up of a node."""
    pairs = []
    if node.op_type in ("Gather", "GatherBlockQuantized"):
        keys = ("axis", "gather_axis")
        axis = next((helper.get_attribute_value(a) for a in node.attribute if a.name in keys), 0)
        pairs = [(1, 0, axis)]
    elif node.op_type == "QEmbedLayerNormalization":
        pairs = [(0, 2, 0), (1, 4, 0)]
    elif node.op_type == "EmbedLayerNormalization":
        pairs = [(0, 2, 0), (1, 4, 0), (8, 3, 0)]
    for ids, table, axis in pairs:
        if max(ids, table) < len(node.input) and node.input[table] in shapes:
            yield node.input[ids], node.input[table], axis
