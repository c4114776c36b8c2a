"""A certificate: a proof as data, complete enough to be checked without this package's analysis.

    {"certificate": 4, "law", "code", "family": "permutation" | "independence",
     "relation": {"tokens": n, "generators": [[...], ...], "last_only": bool},
     "output": {"name", "node", "dims": [[dim, offset], ...]},
     "inputs": {node: token axis or null},
     "subject", "weights": "all" | "these", "assumptions": [...],
     "values": {buffer name: array},                 every stored tensor whose values a step uses
     "steps": [{"node", "operator", "args", "kwargs", "shape", "dtype", "lemma", "fact", "repeats"}, ...],
     "graph": SHA-256 of the steps without lemma, fact and repeats,
     "digest": SHA-256 of everything above}

One step for each node of the graph, in order. A fact is {"moves": [...], "dependence": array, "values": null or
{"low": array, "high": array}}; a step with several results has a list in "shape", "dtype" and "fact"; a
node without a tensor has "fact": null. A step that repeats an earlier one (the same operator and literals on the same
facts) names it in "repeats". A move is "identity", "uniform", or one permutation for each generator. An
array is {"shape": [...], "runs": [[value, count], ...]} in row-major order, each dimension full or 1.
A dependence of -1 is NEVER, of 2**40 ALWAYS. "low" and "high" are the ends of `ValueRanges`; null means that every
element is ordinary.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.fx import Node

from orderproof.diagnosis.analysis import Analysis
from orderproof.diagnosis.domain.fact import Fact
from orderproof.diagnosis.domain.move import FREE, STILL, Move
from orderproof.diagnosis.domain.values import same_numbers
from orderproof.recording.captured_graph import CapturedGraph

VERSION = 4


def graph_records(captured: CapturedGraph, needed: set[Node] | None = None) -> list[dict[str, Any]]:
    """The graph as data: one record for each node (of the needed ones), without lemmas and facts."""
    steps = []
    for node in captured.graph.nodes:
        if node.op == "output" or (needed is not None and node not in needed):
            continue
        value = node.meta.get("val")
        several = isinstance(value, list | tuple)
        parts = list(value) if several else [value]
        shapes = [list(v.shape) if isinstance(v, Tensor) else None for v in parts]
        dtypes = [str(v.dtype).removeprefix("torch.") if isinstance(v, Tensor) else None for v in parts]
        if node.op == "placeholder":
            stored = captured.state.get(node.name)
            kind = "input" if stored is None else "parameter" if stored in captured.parameters else "buffer"
            operator, args = kind, [stored] if stored is not None else []
        else:
            operator, args = _operator_name(node), [_argument(x) for x in node.args]
        steps.append(
            {
                "node": node.name,
                "operator": operator,
                "args": args,
                "kwargs": {k: _argument(v) for k, v in node.kwargs.items()},
                "shape": shapes if several else shapes[0],
                "dtype": dtypes if several else dtypes[0],
            }
        )
    return steps


def graph_fingerprint(steps: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of a graph's records; equal graphs have equal fingerprints."""
    kept = [{k: v for k, v in s.items() if k not in ("lemma", "fact", "repeats")} for s in steps]
    return hashlib.sha256(_canonical(kept)).hexdigest()


def build_certificate(
    captured: CapturedGraph,
    analysis: Analysis,
    *,
    law: str,
    code: str,
    family: str,
    relation: Mapping[str, Any],
    output: str,
    dims: Iterable[tuple[int, int]],
    inputs: Mapping[Node, int | tuple[int, ...] | None],
    subject: str,
    weights: str,
    needed: set[Node],
    assumptions: Sequence[str] = (),
) -> dict[str, Any]:
    """The certificate of one proved law about one output.

    `assumptions`: what the proof assumes besides the assumptions of the analysis.
    """
    unread = {n for n in inputs if n.op == "placeholder"}  # inputs that the output does not read are listed too
    steps = graph_records(captured, needed | unread)
    by_name = {n.name: n for n in captured.graph.nodes}
    first: dict[Node, Node] = {}
    for step in steps:
        node = by_name[step["node"]]
        step["lemma"] = analysis.lemmas.get(node, "")
        kind = analysis.first_occurrence.get(node, node)  # which may not be needed for this output
        if kind in analysis.shared_facts and analysis.facts[node] is analysis.shared_facts[kind]:
            if kind in first:
                step["repeats"] = first[kind].name
            first.setdefault(kind, node)
        facts = analysis.facts.get(node)
        step["fact"] = (
            None if facts is None else [_fact(f) for f in facts] if isinstance(facts, tuple) else _fact(facts)
        )
    certificate: dict[str, Any] = {
        "certificate": VERSION,
        "law": law,
        "code": code,
        "family": family,
        "relation": dict(relation),
        "output": {"name": output, "node": captured.outputs[output].name, "dims": [list(d) for d in dims]},
        "inputs": {n.name: list(a) if isinstance(a, tuple) else a for n, a in inputs.items()},
        "subject": subject,
        "weights": weights,
        "assumptions": list(dict.fromkeys([*assumptions, *analysis.assumptions])),
        "values": _stored_values(captured, analysis, steps, weights),
        "steps": steps,
        "graph": graph_fingerprint(steps),
    }
    certificate["digest"] = digest(certificate)
    return certificate


def digest(certificate: Mapping[str, Any]) -> str:
    """SHA-256 of a certificate without its digest."""
    return hashlib.sha256(_canonical({k: v for k, v in certificate.items() if k != "digest"})).hexdigest()


def _operator_name(node: Node) -> str:
    return "getitem" if getattr(node.target, "__name__", "") == "getitem" else str(node.target)


def _argument(x: Any) -> Any:
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, list | tuple):
        return [_argument(y) for y in x]
    if isinstance(x, torch.dtype):
        return {"dtype": str(x).removeprefix("torch.")}
    if isinstance(x, torch.device):
        return {"device": "cpu"}  # constants are evaluated on the CPU, independent of the device of the export
    if isinstance(x, float) and not math.isfinite(x):
        return {"float": str(x)}
    if x is None or isinstance(x, bool | int | float | str):
        return x
    return {"other": str(x)}


def _fact(fact: Fact) -> dict[str, Any]:
    ranges = fact.ranges
    return {
        "moves": [_move(m) for m in fact.moves],
        "dependence": _array(fact.dependence),
        "values": None if ranges is None else {"low": _array(ranges.low), "high": _array(ranges.high)},
    }


def _move(move: Move) -> Any:
    if move is STILL:
        return "identity"
    if move is FREE:
        return "uniform"
    assert move.permutations is not None
    return move.permutations.tolist()


def _array(array: NDArray[Any]) -> dict[str, Any]:
    flat = array.reshape(-1)
    if not flat.size:
        return {"shape": list(array.shape), "runs": []}
    starts = np.concatenate([[0], np.flatnonzero(~same_numbers(flat[1:], flat[:-1])) + 1])
    counts = np.diff(np.concatenate([starts, [flat.size]]))
    return {
        "shape": list(array.shape),
        "runs": [[_number(flat[i].item()), int(c)] for i, c in zip(starts, counts, strict=True)],
    }


def _number(x: Any) -> Any:
    return {"float": str(x)} if isinstance(x, float) and not math.isfinite(x) else x


def _stored_values(
    captured: CapturedGraph, analysis: Analysis, steps: list[dict[str, Any]], weights: str
) -> dict[str, Any]:
    """Every stored tensor whose values some step may use."""
    stored = {}
    for step in steps:
        if step["operator"] not in ("buffer", "parameter"):
            continue
        name = step["args"][0]
        allowed = step["operator"] == "buffer" or weights == "these"
        value = captured.values.get(name)
        if name in analysis.used_names and allowed and value is not None and not value.is_meta:
            array = (value.float() if value.dtype is torch.bfloat16 else value).detach().clone().numpy()
            stored[name] = {**_array(array), "dtype": str(value.dtype).removeprefix("torch.")}
    return stored


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
