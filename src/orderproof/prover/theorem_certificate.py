"""The certificate of a theorem: the open recordings, the statement's symbols and every fact, as data.

The format is that of `recheck/theorems/theorem.py` and `notation.py`; docs/reference/certificate.md documents it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node

from orderproof.prover.logic.terms import (
    FALSE,
    TRUE,
    And,
    Apply,
    AtMostZero,
    Atom,
    Conditional,
    EqualsZero,
    FloorDivision,
    Formula,
    Holds,
    Not,
    Or,
    Product,
    Term,
    Variable,
    as_term,
)
from orderproof.prover.recording.open_recording import OpenGraph
from orderproof.prover.recording.open_sizes import OpaqueNumber
from orderproof.prover.symbolic.depth import Induction, induction
from orderproof.prover.symbolic.open_fact import Cases, Number, OpenFact
from orderproof.prover.symbolic.rule import OpenFacts
from orderproof.prover.symbolic.statement import BATCH, TOKENS
from orderproof.prover.symbolic.theorem import Branch
from orderproof.prover.symbolic.walk import OpenWalk


def recording_record(branch: Branch, roles: Sequence[str], output: str) -> dict[str, Any]:
    """One recording with the facts about what an output depends on."""
    graph = branch.graph
    node = graph.outputs[output]
    questions = [q.node for q in graph.questions]
    record: dict[str, Any] = {
        "inputs": [[one.name, role] for one, role in zip(graph.inputs, roles, strict=True)],
        "conditions": [formula_data(c) for c in graph.conditions],
        "questions": [[q.node.name, q.answer] for q in graph.questions],
        "asked": _steps(graph, roles, branch.asked, questions, inputs=False),
        "uniform": None if branch.uniform is None else branch.uniform.name,
        "steps": [],
        "output": None,
        "depth": None,
    }
    if branch.possible:
        fact = branch.done.facts[node]
        assert isinstance(fact, OpenFact)
        tokens = [k for k, size in enumerate(fact.sizes) if size is TOKENS]
        row = next(k for k, size in enumerate(fact.sizes) if size is BATCH)
        found = induction(graph, branch.done, node, branch.context)
        record["steps"] = _steps(graph, roles, branch.done, [node], inputs=True)
        record["output"] = {"node": node.name, "row": row, "token": tokens[0] if tokens else None}
        record["depth"] = None if found is None else _depth_record(graph, found, {s["node"] for s in record["steps"]})
    return record


def _steps(
    graph: OpenGraph, roles: Sequence[str], done: OpenWalk, targets: Sequence[Node], *, inputs: bool
) -> list[dict[str, Any]]:
    needed = _ancestors(targets) | (set(graph.inputs) if inputs else set())
    by_input = dict(zip(graph.inputs, roles, strict=True))
    return [_step(graph, node, done.facts, by_input) for node in graph.graph.nodes if node in needed]


def _ancestors(targets: Sequence[Node]) -> set[Node]:
    found: set[Node] = set()
    queue = list(targets)
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            queue += node.all_input_nodes
    return found


def _step(graph: OpenGraph, node: Node, facts: Mapping[Node, OpenFacts], roles: Mapping[Node, str]) -> dict[str, Any]:
    if node.op == "placeholder":
        name = roles.get(node) or graph.state[node.name]
        operator = "input" if node in roles else "parameter" if name in graph.parameters else "buffer"
        args, options = [name], {}
    else:
        operator = "getitem" if getattr(node.target, "__name__", "") == "getitem" else str(node.target)
        args, options = [_argument(x) for x in node.args], {k: _argument(v) for k, v in node.kwargs.items()}
    value = node.meta["val"]
    tensors = [x for x in (value if isinstance(value, list | tuple) else [value]) if isinstance(x, torch.Tensor)]
    return {
        "node": node.name,
        "operator": operator,
        "args": args,
        "kwargs": options,
        "shape": [[term_data(size) for size in shape] for shape in graph.shapes[node]],
        "dtype": [str(x.dtype).removeprefix("torch.") for x in tensors],
        "fact": _fact_data(facts[node]),
        "needs": [],
    }


def _fact_data(facts: OpenFacts) -> Any:
    return [fact_data(f) for f in facts] if isinstance(facts, tuple) else fact_data(facts)


def fact_data(fact: OpenFact) -> dict[str, Any]:
    """A fact as data. What is not said of an element: it is the same, not zero, not hidden, ordinary."""
    data: dict[str, Any] = {"axes": [[term_data(size) for size in axes] for axes in fact.dims]}
    if fact.value is not None:
        return data | {"value": _value_data(fact.value)}
    ordinary = ~(fact.hidden | fact.unbounded)
    parts = (("same", fact.same, TRUE), ("zero", fact.zero, FALSE), ("hidden", fact.hidden, FALSE),
             ("ordinary", ordinary, TRUE))  # fmt: skip
    return data | {name: formula_data(formula) for name, formula, default in parts if formula is not default}


def _value_data(value: Term | Formula | Cases) -> dict[str, Any]:
    if isinstance(value, Term):
        return {"integer": term_data(value)}
    if isinstance(value, Formula):
        return {"boolean": formula_data(value)}
    return {"cases": [[formula_data(condition), _number(number)] for condition, number in value.pairs]}


def _number(number: Number) -> Any:
    return {"float": str(number)} if isinstance(number, float) and not math.isfinite(number) else number


def _depth_record(graph: OpenGraph, found: Induction, nodes: set[str]) -> dict[str, Any]:
    layers = []
    for layer, again in zip(found.layers, found.derived, strict=True):
        kept = [node for node in layer.nodes if node.name in nodes]
        steps = None if again is None else [
            {"node": n.name, "fact": _fact_data(again.facts[n]), "needs": []} for n in kept
        ]  # fmt: skip
        layers.append(
            {
                "nodes": [n.name for n in kept],
                "entry": layer.entry.name,
                "result": layer.result.name,
                "steps": steps,
            }
        )
    return {"layers": layers}


def _argument(x: Any) -> Any:
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, Term):
        return {"size": term_data(x)}
    if isinstance(x, list | tuple):
        return [_argument(y) for y in x]
    if isinstance(x, torch.dtype):
        return {"dtype": str(x).removeprefix("torch.")}
    if isinstance(x, float) and not math.isfinite(x):
        return {"float": str(x)}
    if x is None or isinstance(x, bool | int | float | str):
        return x
    return {"other": x.text if isinstance(x, OpaqueNumber) else str(x)}


# ---------------------------------------------------------------------- terms and formulas


def term_data(term: Term) -> Any:
    """A term in the notation of certificates."""
    parts = [_atom_data(a) if f == 1 else ["*", f, _atom_data(a)] for a, f in term.summands]
    if term.constant or not parts:
        parts.append(term.constant)
    return parts[0] if len(parts) == 1 else ["+", *parts]


def _atom_data(atom: Atom) -> Any:
    match atom:
        case Variable():
            return atom.name
        case Product(parts=(factors,)):
            return ["product", *map(_atom_data, factors)]
        case Apply(parts=(name, arguments)):
            return ["apply", name, *map(term_data, arguments)]
        case Conditional(parts=(condition, first, second)):
            return ["if", formula_data(condition), term_data(first), term_data(second)]
        case FloorDivision(parts=(term, divisor)):
            return ["floor", term_data(term), divisor]
    raise AssertionError(atom)


def formula_data(formula: Formula) -> Any:
    """A formula in the notation of certificates."""
    match formula:
        case AtMostZero(parts=(term,)):
            return ["<=", *_sides(term)]
        case EqualsZero(parts=(term,)):
            return ["=", *_sides(term)]
        case Holds(parts=(name, arguments)):
            return ["holds", name, *map(term_data, arguments)]
        case Not(parts=(inner,)):
            return ["not", formula_data(inner)]
        case And(parts=(operands,)):
            return ["and", *map(formula_data, operands)]
        case Or(parts=(operands,)):
            return ["or", *map(formula_data, operands)]
    return formula is TRUE


def _sides(term: Term) -> tuple[Any, Any]:
    """A comparison with zero with the negative summands on the right."""
    left = right = as_term(0)
    for atom, factor in term.summands:
        own = as_term(atom) * factor
        left, right = (left + own, right) if factor > 0 else (left, right - own)
    constant = term.constant
    left, right = (left + constant, right) if constant > 0 else (left, right + -constant)
    return term_data(left), term_data(right)
