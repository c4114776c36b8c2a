"""The certificate of a theorem about permuted tokens: the open recordings and every fact, as data.

The format is that of `orderproof_recheck/permuted`; docs/reference/certificate.md documents it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import Node

from orderproof.logic.solver import Solver
from orderproof.logic.terms import FALSE, TRUE, Formula, at_most, conjunction, disjunction, less
from orderproof.recording.captured_graph import ancestors
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.certificates.agreement import step_records
from orderproof.theorems.certificates.notation import formula_data, operation_data, term_data
from orderproof.theorems.equivariance import inductive_layers
from orderproof.theorems.facts.moved_fact import Axis, Motion, MovedFact
from orderproof.theorems.facts.open_fact import index
from orderproof.theorems.statement import TOKENS
from orderproof.theorems.walks.moved_constants import constant_operands, constant_walk
from orderproof.theorems.walks.moved_operation import MovedFacts
from orderproof.theorems.walks.moved_walk import MovedWalk, context_of, walk_moved


def moved_recording_record(
    graph: OpenGraph, roles: Sequence[str], output: str, solver: Solver, *, without_order: bool
) -> dict[str, Any]:
    """One recording with the facts about what an output, and the branches of the call, depend on.

    `without_order`: the record says at which steps order is taken out of the graph.
    """
    done = walk_moved(graph, roles, solver, without_order=without_order)
    node = graph.outputs[output]
    needed = ancestors([node, *(q.node for q in graph.questions), *graph.inputs])
    by_input = dict(zip(graph.inputs, roles, strict=True))
    layers = inductive_layers(graph, node, done)
    fact = done.facts[node]
    assert isinstance(fact, MovedFact)
    constants = [one for one in done.constants if one in needed]
    return {
        "inputs": [[one.name, role] for one, role in by_input.items()],
        "conditions": [formula_data(c) for c in graph.conditions],
        "questions": [[q.node.name, q.answer] for q in graph.questions],
        "constants": _constant_steps(graph, constants, solver),
        "everywhere": [one.name for one in constants],
        "entries": [_entry(graph, one) for one in done.entries if one in needed],
        "steps": [
            {**operation_data(graph, one, by_input), "fact": _facts_data(done.facts[one]), "needs": [], "reordered": []}
            for one in graph.graph.nodes
            if one in needed
        ],
        "output": {
            "node": node.name,
            "moves": [d for d, dim in enumerate(fact.dims) for axis in dim if axis.size is TOKENS],
        },
        "depth": _depth_record(graph, node, done, needed) if layers else None,
    }


def _constant_steps(graph: OpenGraph, nodes: Sequence[Node], solver: Solver) -> list[dict[str, Any]]:
    """The steps, with values, of constants whose facts follow from these."""
    found: dict[str, dict[str, Any]] = {}
    context = context_of(graph, solver)
    for node in nodes:
        for step in step_records(
            graph, [""] * len(graph.inputs), constant_walk(graph, node, context), [node], inputs=False
        ):
            found.setdefault(step["node"], step)
    order = {node.name: k for k, node in enumerate(graph.graph.nodes)}
    return sorted(found.values(), key=lambda step: order[step["node"]])


def _entry(graph: OpenGraph, node: Node) -> list[Any]:
    """The step, the constants among its operands, and True if it is causal attention."""
    is_attention = str(node.target).startswith("aten.scaled_dot_product_attention")
    causal = is_attention and (node.args[5] if len(node.args) > 5 else node.kwargs.get("is_causal", False))
    return [node.name, [one.name for one in constant_operands(graph, node)], bool(causal)]


def _depth_record(graph: OpenGraph, output: Node, done: MovedWalk, needed: set[Node]) -> dict[str, Any]:
    return {
        "layers": [
            {
                "nodes": [n.name for n in layer.nodes if n in needed],
                "entry": layer.entry.name,
                "result": layer.result.name,
                "steps": None,
            }
            for layer in inductive_layers(graph, output, done)
        ]
    }


def _facts_data(facts: MovedFacts) -> Any:
    return [fact_data(f) for f in facts] if isinstance(facts, tuple) else fact_data(facts)


def fact_data(fact: MovedFact) -> dict[str, Any]:
    """A fact as data: axes, their motions, and where it is claimed, if not everywhere."""
    data: dict[str, Any] = {
        "axes": [[term_data(axis.size) for axis in dim] for dim in fact.dims],
        "motions": [_motion(axis) for dim in fact.dims for axis in dim],
    }
    where = _where(fact)
    return data if where is TRUE else data | {"where": formula_data(where)}


def _motion(axis: Axis) -> Any:
    return ["moved", axis.before] if axis.motion is Motion.MOVED else axis.motion.value


def _where(fact: MovedFact) -> Formula:
    """Where memory was written."""
    if fact.written is None:
        return TRUE
    dim, ranges = fact.written
    place = sum(len(own) for own in fact.dims[: len(fact.dims) + dim]) if ranges else 0
    inside = [conjunction(at_most(start, index(place)), less(index(place), end)) for start, end in ranges]
    return disjunction(*inside) if inside else FALSE
