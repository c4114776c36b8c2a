"""A certificate: a proof as data, complete enough to be checked without this package's interpreter.

    {"certificate": 1, "law", "code", "family": "permutation" | "influence",
     "relation": {"tokens": n, "generators": [[...], ...], "last_only": bool},
     "output": {"name", "node", "dims": [[dim, offset], ...]},
     "inputs": {node: token axis or null},
     "subject", "weights": "all" | "these", "assumptions": [...],
     "values": {buffer name: array},                 every stored value a step rests on
     "steps": [{"node", "operator", "args", "kwargs", "shape", "dtype", "lemma", "fact", "as"}, ...],
     "graph": SHA-256 of the steps without lemma, fact and as,
     "digest": SHA-256 of everything above}

One step for each node of the graph, in order. A fact is {"moves": [...], "level": array, "known": null or
{"status": array, "value": array}}; a step with several results has a list in "shape", "dtype" and "fact"; a
node without a tensor has "fact": null. A step that repeats an earlier one (the same operator and literals on the same
facts) names it in "as". A move is "still", "free", or one permutation for each generator. An
array is {"shape": [...], "runs": [[value, count], ...]} in row-major order, each dimension full or 1.
A level of -1 is NEVER, of 2**40 ALWAYS; status: 0 unknown, 1 exact, 2 masked, 3 unsure, 4 low.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.fx import Node

from orderproof.errors import CertificateError
from orderproof.prover.capture import Captured
from orderproof.prover.fact import Fact
from orderproof.prover.interpret import Walk
from orderproof.prover.move import FREE, STILL, Move

VERSION = 1


def graph_steps(captured: Captured, needed: set[Node] | None = None) -> list[dict[str, Any]]:
    """The graph as data: one record for each node, without lemmas and facts."""
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
            operator, args = _operator(node), [_argument(x) for x in node.args]
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


def fingerprint(steps: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of a graph's records: the same graph always has the same one."""
    kept = [{k: v for k, v in s.items() if k not in ("lemma", "fact", "as")} for s in steps]
    return hashlib.sha256(_canonical(kept)).hexdigest()


def make(
    captured: Captured,
    walk: Walk,
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
) -> dict[str, Any]:
    """The certificate of one proved law about one output."""
    unread = {n for n in inputs if n.op == "placeholder"}  # an input that the output does not read is told too
    steps = graph_steps(captured, needed | unread)
    by_name = {n.name: n for n in captured.graph.nodes}
    first: dict[Node, Node] = {}
    for step in steps:
        node = by_name[step["node"]]
        step["lemma"] = walk.lemmas.get(node, "")
        kind = walk.same.get(node, node)  # the first of its kind may not be needed for this output
        if kind in walk.made and walk.facts[node] is walk.made[kind]:
            if kind in first:
                step["as"] = first[kind].name
            first.setdefault(kind, node)
        facts = walk.facts.get(node)
        step["fact"] = (
            None if facts is None else [_fact(f) for f in facts] if isinstance(facts, tuple) else _fact(facts)
        )
    made: dict[str, Any] = {
        "certificate": VERSION,
        "law": law,
        "code": code,
        "family": family,
        "relation": dict(relation),
        "output": {"name": output, "node": captured.outputs[output].name, "dims": [list(d) for d in dims]},
        "inputs": {n.name: list(a) if isinstance(a, tuple) else a for n, a in inputs.items()},
        "subject": subject,
        "weights": weights,
        "assumptions": list(walk.assumptions),
        "values": _values(captured, walk, steps, weights),
        "steps": steps,
        "graph": fingerprint(steps),
    }
    made["digest"] = digest(made)
    return made


def digest(certificate: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the digest."""
    return hashlib.sha256(_canonical({k: v for k, v in certificate.items() if k != "digest"})).hexdigest()


def read(path: str | Path) -> list[dict[str, Any]]:
    """Read the certificates in a file (one, or a list of them). Raises `CertificateError`."""
    try:
        made = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise CertificateError(f"expected a certificate file; {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"expected a certificate (JSON); {path} is not JSON: {error}") from error
    found = made if isinstance(made, list) else [made]
    if not found or any(not isinstance(c, dict) or c.get("certificate") != VERSION for c in found):
        raise CertificateError(f"expected a certificate of version {VERSION}; {path} holds something else")
    return found


def _operator(node: Node) -> str:
    return "getitem" if getattr(node.target, "__name__", "") == "getitem" else str(node.target)


def _argument(x: Any) -> Any:
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, list | tuple):
        return [_argument(y) for y in x]
    if isinstance(x, torch.dtype):
        return {"dtype": str(x).removeprefix("torch.")}
    if isinstance(x, torch.device):
        return {"device": "cpu"}  # constants are computed on the CPU wherever the graph was recorded
    if isinstance(x, float) and not math.isfinite(x):
        return {"float": str(x)}
    if x is None or isinstance(x, bool | int | float | str):
        return x
    return {"other": str(x)}


def _fact(fact: Fact) -> dict[str, Any]:
    known = fact.known
    return {
        "moves": [_move(m) for m in fact.moves],
        "level": _array(fact.level),
        "known": None if known is None else {"status": _array(known.status), "value": _array(known.value)},
    }


def _move(move: Move) -> Any:
    if move is STILL:
        return "still"
    if move is FREE:
        return "free"
    assert move.permutations is not None
    return move.permutations.tolist()


def _array(array: NDArray[Any]) -> dict[str, Any]:
    flat = array.reshape(-1)
    if not flat.size:
        return {"shape": list(array.shape), "runs": []}
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    counts = np.diff(np.concatenate([starts, [flat.size]]))
    return {
        "shape": list(array.shape),
        "runs": [[_number(flat[i].item()), int(c)] for i, c in zip(starts, counts, strict=True)],
    }


def _number(x: Any) -> Any:
    return {"float": str(x)} if isinstance(x, float) and not math.isfinite(x) else x


def _values(captured: Captured, walk: Walk, steps: list[dict[str, Any]], weights: str) -> dict[str, Any]:
    """Every stored tensor whose value some step may use."""
    found = {}
    for step in steps:
        if step["operator"] not in ("buffer", "parameter"):
            continue
        name = step["args"][0]
        allowed = step["operator"] == "buffer" or weights == "these"
        value = captured.values.get(name)
        if name in walk.consulted and allowed and value is not None and not value.is_meta:
            array = (value.float() if value.dtype is torch.bfloat16 else value).detach().numpy()
            found[name] = {**_array(array), "dtype": str(value.dtype).removeprefix("torch.")}
    return found


def _canonical(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()
