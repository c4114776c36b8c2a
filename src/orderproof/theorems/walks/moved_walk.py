"""Derive which axes of the tensors of an open graph move with the tokens, node by node."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch.fx import Node

from orderproof.logic.solver import Solver
from orderproof.logic.terms import at_most
from orderproof.recording.open_recording import OpenGraph
from orderproof.recording.open_sizes import LEAST_SIZE
from orderproof.theorems.facts.moved_fact import NOTHING, Axis, Motion, MovedFact, uniform
from orderproof.theorems.facts.open_fact import NotCovered
from orderproof.theorems.facts.stored_constants import same_values
from orderproof.theorems.statement import BATCH, FIXED, TOKENS
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.moved_constants import (
    compares_indices,
    constant_operands,
    is_constant,
    moved_by_value,
    with_moved_tokens,
)
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation, is_function, is_same_tensor, is_view
from orderproof.theorems.walks.operation import operator_of
from orderproof.theorems.walks.operator_rules import find_moved_rule

OF_A_SHAPE = {  # operators that read no element of their operand
    f"{how}_{what}" if how == "new" else f"{what}_{how}"
    for how in ("new", "like")
    for what in ("zeros", "ones", "full", "empty")
}


@dataclass(frozen=True)
class MovedWalk:
    """The facts of an open graph, why nodes have none, the entries that were made uniform, and facts by values.

    `constants` are the nodes whose facts follow from their values at each index, `assumptions` what these assume.
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
    kept: dict[Node, MovedFact] = {}
    while True:
        try:
            return _derive(graph, known, context, kept, without_order=without_order)
        except _Kept as found:  # earlier nodes that read them have other facts now
            kept |= found.facts


class _Kept(Exception):
    """Constants move with the tokens, by their values; `facts` are those about them."""

    def __init__(self, facts: dict[Node, MovedFact]) -> None:
        super().__init__()
        self.facts = facts


def context_of(graph: OpenGraph, solver: Solver) -> Context:
    """The context of a walk: what is known of the sizes."""
    premises = (at_most(LEAST_SIZE, TOKENS), at_most(LEAST_SIZE, BATCH), *graph.conditions)
    return Context(solver, premises, lambda _: (), of_inputs=graph.of_inputs)


def _input_fact(graph: OpenGraph, node: Node, role: str) -> MovedFact:
    fact = uniform(graph.shape(node), Motion.STILL)
    return fact if role == FIXED else with_moved_tokens(fact)


def _derive(
    graph: OpenGraph,
    known: Mapping[Node, MovedFacts],
    context: Context,
    kept: Mapping[Node, MovedFact],
    *,
    without_order: bool,
) -> MovedWalk:
    facts: dict[Node, MovedFacts] = {**known, **kept}
    failures: dict[Node, str] = {}
    entries: list[Node] = []
    constants: list[Node] = list(kept)
    for node in graph.graph.nodes:
        if node in kept:
            continue
        if node.op == "placeholder" and node not in facts:
            facts[node] = _state_fact(graph, node)
        if node.op != "call_function" or any(operand not in facts for operand in node.all_input_nodes):
            continue
        try:
            facts[node] = _fact(graph, node, facts, context)
        except NotCovered as error:
            _try_constants_that_move(graph, node, facts, context)
            uniform_fact = _fact_without_order(graph, node, facts, context) if without_order else None
            if uniform_fact is None:
                failures[node] = str(error)
                if _gives_its_shape_only(node):
                    facts[node] = replace(uniform(graph.shape(node), Motion.FREE), written=NOTHING)
                continue
            facts[node] = uniform_fact
            entries.append(node)
        if compares_indices(graph, node, facts[node]) and is_constant(graph, node, context):
            facts[node] = uniform(graph.shape(node), Motion.FREE)
            constants.append(node)
    return MovedWalk(facts, failures, tuple(entries), tuple(constants), tuple(context.assumptions))


def _gives_its_shape_only(node: Node) -> bool:
    """True of a tensor that serves as the form of another: nothing need be known of its elements."""
    return bool(node.users) and all(operator_of(user) in OF_A_SHAPE for user in node.users)


def _try_constants_that_move(graph: OpenGraph, node: Node, facts: dict[Node, MovedFacts], context: Context) -> None:
    """Raises `_Kept` if a node has a fact where its constants move with the tokens."""
    found = {
        one: moved
        for one in constant_operands(graph, node)
        if (moved := moved_by_value(graph, one, facts[one], context))
    }
    if found:
        try:
            _fact(graph, node, {**facts, **found}, context)
        except NotCovered:
            return
        raise _Kept(found)


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
