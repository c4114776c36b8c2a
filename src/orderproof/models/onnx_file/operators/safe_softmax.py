"""A softmax whose rows without a visible key give zeros, as exporters write it: `Where(IsNaN(y), 0, y)`.

Its rows are those of torch's `_safe_softmax`, of which lemmas know that a hidden key has weight zero. They differ for
scores that are NaN themselves, which no proof speaks of.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from onnx import GraphProto, ModelProto, NodeProto

from orderproof.models.onnx_file.graph import graphs_of
from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.stored import constant_of, tensor_of
from orderproof.models.onnx_file.values import Value

DOMAIN, NAME = "orderproof", "SafeSoftmax"


@operator(NAME, domain=DOMAIN)
def safe_softmax(call: Operation) -> Value:
    """A softmax along an axis; zeros along it where all scores are minus infinity."""
    found: Value = torch.ops.aten._safe_softmax(call.tensor(0), call.attribute("axis", -1))
    return found


def with_safe_softmax(model: ModelProto) -> ModelProto:
    """The model with one node for each softmax of this form."""
    if any(entry.domain in ("", "ai.onnx") and entry.version >= 13 for entry in model.opset_import):
        for graph in _graphs(model.graph):
            _rewrite(graph)
    return model


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for inner in graphs_of(node).values():
            yield from _graphs(inner)


def _rewrite(graph: GraphProto) -> None:
    by_output = {name: node for node in graph.node for name in node.output}
    stored = {x.name: x for x in graph.initializer if not x.dims or list(x.dims) == [1]}

    def is_zero(name: str) -> bool:
        node = by_output.get(name)
        if node is not None and node.op_type == "Constant" and any(a.name == "value" for a in node.attribute):
            value = constant_of(node)
            return value.numel() == 1 and float(value) == 0.0
        return name in stored and float(tensor_of(stored[name]).reshape(())) == 0.0

    def of_kind(name: str, kind: str) -> NodeProto | None:
        node = by_output.get(name)
        return node if node is not None and node.op_type == kind else None

    for node in graph.node:
        if node.op_type != "Where" or node.domain not in ("", "ai.onnx"):
            continue
        condition, softmax = of_kind(node.input[0], "IsNaN"), of_kind(node.input[2], "Softmax")
        if condition is not None and softmax is not None and condition.input[0] == node.input[2]:
            if is_zero(node.input[1]):
                node.op_type, node.domain = NAME, DOMAIN
                node.attribute.extend(softmax.attribute)
                del node.input[:]
                node.input.append(softmax.input[0])
