"""The repeated layers of a recorded graph.

A layer reads what the layer before it computed, its own parameters, and tensors that other layers read too: what only
one layer reads, such as a mask that each layer makes narrower, may have any value for a further one. Layers of the same
classes have the same code, or codes that alternate: others may be steps of a sequence that goes on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from torch.fx import Node
from torch.fx.node import map_aggregate

from orderproof.recording.captured_graph import module_path
from orderproof.recording.open_recording import OpenGraph
from orderproof.recording.program import origin_by_values

_INDEX = re.compile(r"^(.*?(?:^|\.))(\d+)(?=\.|$)")
_LOOP_INDEX = re.compile(r"\bstep \d+\b")  # as `loop_recording` names it


@dataclass(frozen=True)
class Layer:
    """One of the repeated layers: its nodes, the node that enters it, and its result."""

    nodes: tuple[Node, ...]
    entry: Node  # of what enters the layer: the result of the one before
    result: Node


def repeated_layers(graph: OpenGraph, output: Node, matching: Callable[[Node, Node], bool]) -> list[Layer]:
    """The repeated layers of a graph in order, of whose last one the output is computed.

    Empty if there are none, or if they exchange more than one tensor. `matching` is true of two nodes with facts of the
    same shape, of which one can enter a layer whose result is the other.
    """
    members: dict[str, dict[int, list[Node]]] = {}
    for node in graph.graph.nodes:
        found = _INDEX.match(module_path(node)) if node.op == "call_function" else None
        if found is not None:
            members.setdefault(found[1], {}).setdefault(int(found[2]), []).append(node)
    stacks = [by_index for by_index in members.values() if len(by_index) > 1]
    if not stacks:
        return []
    by_index = max(stacks, key=lambda found: sum(map(len, found.values())))
    layers: list[Layer] = []
    computed: set[Node] = set()  # from the results of layers
    for index in sorted(by_index):
        layer = _layer(by_index[index], layers[-1].result if layers else None, computed, matching)
        if layer is None:
            return []
        layers.append(layer)
        queue = [layer.result]
        while queue:
            node = queue.pop()
            if node not in computed:
                computed.add(node)
                queue += node.users
    return layers if _reads_last_layer_only(output, layers) and _are_kinds(graph, layers) else []


def _are_kinds(graph: OpenGraph, layers: Sequence[Layer]) -> bool:
    """True if a further layer is one of the recorded ones, as far as these show it."""
    readers = Counter(node for layer in layers for node in _shared(layer) if node.op == "call_function")
    if any(count == 1 for count in readers.values()):
        return False
    codes: dict[frozenset[tuple[str, type]], list[str]] = {}
    for layer in layers:
        codes.setdefault(_classes(layer), []).append(_code(graph, layer))
    return all(len(set(found)) == 1 or _alternate(found) for found in codes.values())


def _alternate(codes: Sequence[str]) -> bool:
    """True if each code comes again after another one."""
    runs = Counter(code for code, _ in groupby(codes))
    return all(count > 1 for count in runs.values())


def _shared(layer: Layer) -> set[Node]:
    """The nodes that a layer reads, without its entry and its own ones."""
    own = {*layer.nodes, layer.entry}
    return {node for one in layer.nodes for node in one.all_input_nodes if node not in own}


def _classes(layer: Layer) -> frozenset[tuple[str, type]]:
    """The classes of the modules of a layer that compute something, by their paths within it."""
    found = set()
    for node in layer.nodes:
        for path, kind in node.meta.get("nn_module_stack", {}).values():
            if (match := _INDEX.match(path)) is not None:
                found.add((path[match.end() :], kind))
    return frozenset(found)


def _code(graph: OpenGraph, layer: Layer) -> str:
    """The operators of a layer with their arguments, in which a parameter is known by its place and shape only."""
    places: dict[Node, str] = {layer.entry: "entry"}
    for node in layer.nodes:
        places[node] = f"result {len(places)}"

    def name(value: Any) -> Any:
        if not isinstance(value, Node):
            return value
        if value not in places:
            state = graph.state.get(value.name)
            if state in graph.parameters:
                places[value] = f"parameter {graph.shapes[value]}"
            elif state in graph.values:
                places[value] = f"constant {origin_by_values(graph.values[state])}"
            else:
                places[value] = value.name
        return places[value]

    text = "\n".join(f"{node.target} {map_aggregate((node.args, node.kwargs), name)}" for node in layer.nodes)
    indices: dict[str, str] = {}  # numbered in each layer, and not in the recording
    return _LOOP_INDEX.sub(lambda found: indices.setdefault(found[0], f"index {len(indices)}"), text)


def _layer(
    nodes: Sequence[Node], before: Node | None, computed: set[Node], matching: Callable[[Node, Node], bool]
) -> Layer | None:
    own = set(nodes)
    results = [node for node in nodes if any(user not in own for user in node.users)]
    outside = {node for one in nodes for node in one.all_input_nodes if node not in own}
    if len(results) != 1 or outside & computed != ({before} if before is not None else set()):
        return None
    entries = [before] if before is not None else [n for n in outside if matching(n, results[0])]
    return Layer(tuple(nodes), entries[0], results[0]) if len(entries) == 1 else None


def _reads_last_layer_only(output: Node, layers: Sequence[Layer]) -> bool:
    """True if an output is computed from the result of the last layer, and from no other result of a layer."""
    inside = {node for layer in layers for node in layer.nodes}
    seen, queue, read = set(), [output], set()
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in inside:
            read.add(node)
        else:
            queue += node.all_input_nodes
    return read == {layers[-1].result}
