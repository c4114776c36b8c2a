"""Source lines of operators inside blocks such as `torch.autocast`.

torch.export keeps such a block as a graph of its own. When the block is inlined, its generated code runs, and an
operator gets the line of that code in place of the model's. The generated line begins with the name of the node, of
which the graph of the block has the model's line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch.fx import Graph, GraphModule

_GENERATED = re.compile(r'File "<eval_with_key>[^"]*", line \d+, in [^\n]*\n\s*(?P<name>\w+)[^\n]*\s*\Z')
_KEYS = ("stack_trace", "nn_module_stack")

Origin = dict[str, Any]  # of a node: the entries of its metadata that say where it comes from


def origins_in_blocks(module: GraphModule) -> dict[str, Origin]:
    """Where the nodes of all blocks come from, by name; a name that stands for several lines is left out."""
    found: dict[str, Origin] = {}
    ambiguous = set()
    blocks = [x for name, x in module.named_modules() if name and isinstance(x, GraphModule)]
    for node in (node for block in blocks for node in block.graph.nodes):
        origin = {key: node.meta[key] for key in _KEYS if node.meta.get(key)}
        if node.op != "call_function" or "stack_trace" not in origin:
            continue
        known = found.setdefault(node.name, origin)
        if known["stack_trace"] != origin["stack_trace"]:
            ambiguous.add(node.name)
    return {name: origin for name, origin in found.items() if name not in ambiguous}


def restore_origins(graph: Graph, origins: Mapping[str, Origin]) -> None:
    """Give the nodes with a generated line the line of the model; none if it is not known."""
    for node in graph.nodes:
        generated = _GENERATED.search(str(node.meta.get("stack_trace") or ""))
        if generated is not None:
            node.meta["stack_trace"] = ""
            node.meta.update(origins.get(generated["name"], {}))
