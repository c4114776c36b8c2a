"""Paths from the axes of a graph's inputs to the dimensions of its tensors.

They say which index of an input each dimension is.

A module of one length cannot show by calls which dimensions of its output run over tokens. Its graph can: a dimension
runs over tokens if a path of operators leads to it from the token axis of an input, and each of them keeps the index:
`x + table` does, a matrix over the tokens does not. Nothing here is a proof; it says how a law reads an output.

A dimension is a sequence of parts, because reshaping merges and splits dimensions. The kinds of a part are the names of
axes of the inputs, FEATURE (an index of other axes, or of a parameter), and UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.fx import Graph, Node

from orderproof.diagnosis.index_parts import (
    FEATURE,
    UNKNOWN,
    Dim,
    Dims,
    Part,
    dim_size,
    is_feature,
    node_shape,
    unknown,
)
from orderproof.diagnosis.index_rules import rule_of


def follow_indices(graph: Graph, starts: Mapping[Node, Mapping[int, str]]) -> dict[Node, Dims]:
    """The dimensions of each tensor of a graph; `starts` names the axes of the inputs, by dimension.

    Other dimensions of inputs are features, and so are those of parameters and constants.
    """
    found: dict[Node, Dims] = {}
    for node in graph.nodes:
        value = node.meta.get("val")
        if not isinstance(value, Tensor):
            continue
        shape = node_shape(node)
        if node in starts or node.op == "placeholder":
            names = starts.get(node, {})
            found[node] = tuple((Part(size, names.get(d, FEATURE)),) for d, size in enumerate(shape))
        elif node.op == "call_function":
            found[node] = _checked(rule_of(node)(node, found), shape)
    return found


def _checked(dims: Dims, shape: tuple[int, ...]) -> Dims:
    """The dimensions, or unknown ones where the sizes are not those of the tensor."""
    if len(dims) != len(shape):
        return unknown(shape)
    return tuple(dim if dim_size(dim) == size else (Part(size),) for dim, size in zip(dims, shape, strict=True))


def kind_of(dim: Dim) -> tuple[str, int]:
    """The kind of a dimension, and how many entries precede those of the input's axis; a merged one is unknown."""
    if dim_size(dim) == 1 or is_feature(dim):
        return FEATURE, 0
    return (dim[0].kind, dim[0].before) if len(dim) == 1 else (UNKNOWN, 0)
