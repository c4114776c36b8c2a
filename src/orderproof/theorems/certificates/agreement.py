"""The certificate of a theorem: the open recordings, the statement's symbols and every fact, as data.

The format is that of `orderproof_recheck/theorem.py`; docs/reference/certificate.md documents it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch.fx import Node

from orderproof.logic.terms import FALSE, TRUE, Formula, Term
from orderproof.recording.captured_graph import ancestors
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.branches import Branch
from orderproof.theorems.certificates.notation import formula_data, operation_data, term_data
from orderproof.theorems.facts.open_fact import Cases, Number, OpenFact
from orderproof.theorems.statement import BATCH, TOKENS
from orderproof.theorems.walks.depth import Induction, induction
from orderproof.theorems.walks.open_operation import OpenFacts
from orderproof.theorems.walks.open_walk import OpenWalk


def recording_record(branch: Branch, roles: Sequence[str], output: str) -> dict[str, Any]:
    """One recording with the facts about what an output depends on."""
    graph = branch.graph
    questions = [q.node for q in graph.questions]
    record: dict[str, Any] = {
        "inputs": [[one.name, role] for one, role in zip(graph.inputs, roles, strict=True)],
        "conditions": [formula_data(c) for c in graph.conditions],
        "questions": [[q.node.name, q.answer] for q in graph.questions],
        "asked": step_records(graph, roles, branch.asked, questions, inputs=False),
        "uniform": None if branch.uniform is None else branch.uniform.name,
        "steps": [],
        "output": None,
        "depth": None,
    }
    if branch.possible and not graph.is_cut_off:
        node = graph.outputs[output]
        fact = branch.done.facts[node]
        assert isinstance(fact, OpenFact)
        tokens = [k for k, size in enumerate(fact.sizes) if size is TOKENS]
        row = next(k for k, size in enumerate(fact.sizes) if size is BATCH)
        found = induction(graph, branch.done, node, branch.context)
        record["steps"] = step_records(graph, roles, branch.done, [node], inputs=True)
        record["output"] = {"node": node.name, "row": row, "token": tokens[0] if tokens else None}
        record["depth"] = None if found is None else _depth_record(graph, found, {s["node"] for s in record["steps"]})
    return record


def step_records(
    graph: OpenGraph, roles: Sequence[str], done: OpenWalk, targets: Sequence[Node], *, inputs: bool
) -> list[dict[str, Any]]:
    """The steps of the nodes on which some nodes depend, with their facts."""
    needed = ancestors(targets) | (set(graph.inputs) if inputs else set())
    by_input = dict(zip(graph.inputs, roles, strict=True))
    return [_step(graph, node, done.facts, by_input) for node in graph.graph.nodes if node in needed]


def _step(graph: OpenGraph, node: Node, facts: Mapping[Node, OpenFacts], roles: Mapping[Node, str]) -> dict[str, Any]:
    return {**operation_data(graph, node, roles), "fact": _fact_data(facts[node]), "needs": []}


def _fact_data(facts: OpenFacts) -> Any:
    return [fact_data(f) for f in facts] if isinstance(facts, tuple) else fact_data(facts)


def fact_data(fact: OpenFact) -> dict[str, Any]:
    """A fact as data. What is not said of an element: it is the same, not zero, not hidden, ordinary."""
    data: dict[str, Any] = {"axes": [[term_data(size) for size in axes] for axes in fact.dims]}
    if fact.value is not None:
        return data | {"value": _value_data(fact.value)}
    ordinary = ~(fact.hidden | fact.unbounded)
    parts = (("same", fact.same, TRUE), ("zero", fact.zero, FALSE), ("hidden", fact.hidden, FALSE),
             ("ordinary", ordinary, TRUE), ("low", fact.low, FALSE))  # fmt: skip
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
