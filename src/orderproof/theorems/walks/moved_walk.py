"""Derive which axes of the tensors of an open graph move with the tokens, node by node."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch.fx import Node

from orderproof.logic.solver import Solver
from orderproof.logic.terms import Formula, at_most, negation
from orderproof.recording.captured_graph import ancestors
from orderproof.recording.open_recording import OpenGraph
from orderproof.recording.open_sizes import LEAST_SIZE
from orderproof.theorems.facts.moved_fact import NOTHING, Axis, Motion, MovedFact, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.facts.stored_constants import same_values
from orderproof.theorems.statement import BATCH, FIXED, TOKENS
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation, is_function, is_same_tensor, is_view
from orderproof.theorems.walks.open_walk import OpenWalk, derive
from orderproof.theorems.walks.operation import operator_of
from orderproof.theorems.walks.operator_rules import find_moved_rule

OF_A_SHAPE = {  # operators that read no element of their operand
    f"{how}_{what}" if how == "new" else f"{what}_{how}"
    for how in ("new", "like")
    for what in ("zeros", "ones", "full", "empty")
}


@dataclass(frozen=True)
class MovedWalk:
    """The facts of an open graph, why nodes have none, the entries that were made uniform, and constant booleans.

    With the assumptions under which booleans are constant.
    """

    facts: dict[Node, MovedFacts]
    failures: dict[Node, str]
    entries: tuple[Node, ...] = ()
    constants: tuple[Node, ...] = ()
    assumptions: tuple[str, ...] = ()


def walk_moved(graph: OpenGraph, roles: Sequence[str], solver: Solver, *, without_order: bool = False) -> MovedWalk:
    """The facts about the nodes of a graph, given the roles of its inputs. A node without a rule has none.

    `without_order`: constants that are not the same for every token are made so where they meet tokens.
    """
    context = context_of(graph, solver)
    known = {node: _input_fact(graph, node, role) for node, role in zip(graph.inputs, roles, strict=True)}
    return _derive(graph, known, context, without_order=without_order)


def context_of(graph: OpenGraph, solver: Solver) -> Context:
    """The context of a walk: what is known of the sizes."""
    premises = (at_most(LEAST_SIZE, TOKENS), at_most(LEAST_SIZE, BATCH), *graph.conditions)
    return Context(solver, premises, lambda _: (), of_inputs=graph.of_inputs)


def _input_fact(graph: OpenGraph, node: Node, role: str) -> MovedFact:
    fact = uniform(graph.shape(node), Motion.STILL)
    if role == FIXED:
        return fact
    return MovedFact(
        tuple(tuple(Axis(a.size, Motion.MOVED if a.size is TOKENS else a.motion) for a in dim) for dim in fact.dims)
    )


def _derive(graph: OpenGraph, known: Mapping[Node, MovedFacts], context: Context, *, without_order: bool) -> MovedWalk:
    facts: dict[Node, MovedFacts] = dict(known)
    failures: dict[Node, str] = {}
    entries: list[Node] = []
    constants: list[Node] = []
    for node in graph.graph.nodes:
        if node.op == "placeholder" and node not in facts:
            facts[node] = _state_fact(graph, node)
        if node.op != "call_function" or any(operand not in facts for operand in node.all_input_nodes):
            continue
        try:
            facts[node] = _fact(graph, node, facts, context)
        except NotCovered as error:
            uniform_fact = _fact_without_order(graph, node, facts, context) if without_order else None
            if uniform_fact is None:
                failures[node] = str(error)
                if _gives_its_shape_only(node):
                    facts[node] = replace(uniform(graph.shape(node), Motion.FREE), written=NOTHING)
                continue
            facts[node] = uniform_fact
            entries.append(node)
        if _compares_indices(graph, node, facts[node]) and _is_constant(graph, node, context):
            facts[node] = uniform(graph.shape(node), Motion.FREE)
            constants.append(node)
    return MovedWalk(facts, failures, tuple(entries), tuple(constants), tuple(context.assumptions))


def _gives_its_shape_only(node: Node) -> bool:
    """True of a tensor that serves as the form of another: nothing need be known of its elements."""
    return bool(node.users) and all(operator_of(user) in OF_A_SHAPE for user in node.users)


def _compares_indices(graph: OpenGraph, node: Node, facts: MovedFacts) -> bool:
    """True of booleans that follow from the indices of tokens."""
    if not isinstance(facts, MovedFact) or node.meta["val"].dtype is not torch.bool or not facts.is_unmoved:
        return False
    return any(axis.size is TOKENS and axis.motion is Motion.STILL for dim in facts.dims for axis in dim)


def _is_constant(graph: OpenGraph, node: Node, context: Context) -> bool:
    """True if booleans that depend on no input are all true, or all false: `index >= 0`."""
    before = ancestors([node])
    if not before.isdisjoint(graph.inputs):
        return False
    fact = constant_walk(graph, node, context).facts.get(node)
    if not isinstance(fact, OpenFact) or not isinstance(fact.value, Formula):
        return False
    return context.proves(fact.value, fact.sizes) or context.proves(negation(fact.value), fact.sizes)


def constant_walk(graph: OpenGraph, node: Node, context: Context) -> OpenWalk:
    """The facts with values about what a node depends on, none of which is an input."""
    before = ancestors([node])
    return derive(graph, [n for n in graph.graph.nodes if n in before], {}, context)


def _state_fact(graph: OpenGraph, node: Node) -> MovedFact:
    """The fact about a parameter, or a constant, which may be the same for all indices of a dimension."""
    fact = uniform(graph.shape(node), Motion.STILL)
    name = graph.state[node.name]
    values = None if name in graph.parameters else graph.values.get(name)
    for d, dim in enumerate(fact.dims):
        if dim and values is not None and values.numel() and bool(same_values(values, values.narrow(d, 0, 1)).all()):
            fact = fact.with_dim(d, tuple(Axis(axis.size, Motion.FREE) for axis in dim))
    return fact


def _fact_without_order(
    graph: OpenGraph, node: Node, facts: dict[Node, MovedFacts], context: Context
) -> MovedFacts | None:
    """The fact about a node whose constant operands are the same for every token; None if it has none even so."""
    changed = dict(facts)
    for operand in constant_operands(graph, node):
        fact = facts[operand]
        if isinstance(fact, MovedFact):
            changed[operand] = replace(fact, dims=tuple(tuple(map(_same_for_every_token, dim)) for dim in fact.dims))
    try:
        return _fact(graph, node, changed, context, without_order=True)
    except NotCovered:
        return None


def constant_operands(graph: OpenGraph, node: Node) -> list[Node]:
    """The operands that depend on no input."""
    return [operand for operand in node.all_input_nodes if ancestors([operand]).isdisjoint(graph.inputs)]


def _same_for_every_token(axis: Axis) -> Axis:
    return replace(axis, motion=Motion.FREE) if axis.size.variables & TOKENS.variables else axis


def _fact(
    graph: OpenGraph, node: Node, facts: dict[Node, MovedFacts], context: Context, *, without_order: bool = False
) -> MovedFacts:
    if node.target is operator.getitem:
        whole, place = facts[node.args[0]], node.args[1]  # type: ignore[index]
        if not isinstance(whole, tuple):
            raise NotCovered("a part of one tensor")
        return whole[place]  # type: ignore[index]
    operands = [fact for x in node.all_input_nodes for fact in listed(facts[x])]
    if len(operands) == 1 and operands[0].written is not None and is_view(node.target):
        kept = is_same_tensor(node.target) and graph.shape(node) == graph.shape(node.all_input_nodes[0])
        return operands[0] if kept else replace(uniform(graph.shape(node), Motion.FREE), written=NOTHING)
    call = MovedOperation(node, facts, graph.shapes[node], context, without_order)
    rule = find_moved_rule(node.target)
    try:
        if rule is None:
            raise NotCovered(f"{node.target} has no rule")
        return call.checked(rule(call))
    except NotCovered:
        if not is_function(node.target) or not all(f.is_unmoved and f.written is None for f in operands):
            raise
    found = tuple(uniform(shape, Motion.STILL) for shape in graph.shapes[node])  # the same operands, the same result
    return found if isinstance(node.meta["val"], list | tuple) else found[0]


def listed(facts: MovedFacts) -> tuple[MovedFact, ...]:
    """The facts about all results of an operator."""
    return facts if isinstance(facts, tuple) else (facts,)
