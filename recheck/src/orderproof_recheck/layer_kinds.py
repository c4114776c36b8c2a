"""Layers repeat: a further layer reads and computes what a recorded one does.

What only one layer reads may be the first step of a sequence that goes on, such as a mask that each layer makes
narrower. So may layers of the same operators whose numbers or shared operands differ, unless they alternate. Layers of
other operators are layers of another kind: a certificate does not name the classes of their modules.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from orderproof_recheck.logic.notation import require
from orderproof_recheck.loops import INDEX
from orderproof_recheck.reading import step_nodes

_LOOP_INDEX = re.compile(rf'"{INDEX}[^"]*"')
_STORED = ("input", "parameter", "buffer")
Steps = Mapping[str, Mapping[str, Any]]
Layer = Mapping[str, Any]


def check_kinds(layers: Sequence[Layer], steps: Steps) -> None:
    """Raise `CertificateError` unless the recorded layers show which layers a further one may be."""
    readers = Counter(node for layer in layers for node in _shared(layer, steps))
    alone = [node for node, count in readers.items() if count == 1 and steps[node]["operator"] not in _STORED]
    require(not alone, "only one layer reads a tensor that is computed outside of the layers")
    codes: dict[tuple[str, ...], list[str]] = {}
    for layer in layers:
        operators = tuple(steps[node]["operator"] for node in layer["nodes"])
        codes.setdefault(operators, []).append(_code(layer, steps))
    for found in codes.values():
        runs = Counter(code for code, _ in groupby(found))
        message = "layers of the same operators have other operands, and do not alternate"
        require(len(runs) == 1 or min(runs.values()) > 1, message)


def _shared(layer: Layer, steps: Steps) -> set[str]:
    """The nodes that a layer reads, without its entry and its own ones."""
    return {node for one in layer["nodes"] for node in step_nodes(steps[one])} - {*layer["nodes"], layer["entry"]}


def _code(layer: Layer, steps: Steps) -> str:
    """The steps of a layer, in which a parameter or a buffer is known by what is claimed of it."""
    places: dict[str, Any] = {layer["entry"]: "entry"}
    places |= {node: place for place, node in enumerate(layer["nodes"])}

    def name(value: Any) -> Any:
        if isinstance(value, list):
            return [name(part) for part in value]
        if not isinstance(value, dict) or "node" not in value:
            return value
        node = value["node"]
        if node not in places and steps[node]["operator"] in ("parameter", "buffer"):
            places[node] = [steps[node][key] for key in ("operator", "shape", "dtype", "fact")]
        return {"node": places.get(node, node)}

    parts = [[one["operator"], name(one["args"]), {k: name(v) for k, v in one["kwargs"].items()}, one["shape"]]
             for one in map(steps.__getitem__, layer["nodes"])]  # fmt: skip
    indices: dict[str, str] = {}  # numbered in each layer, and not in the recording
    text = json.dumps(parts, sort_keys=True)
    return _LOOP_INDEX.sub(lambda found: indices.setdefault(found[0], f'"index {len(indices)}"'), text)
