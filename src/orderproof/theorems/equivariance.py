"""Prove f(P X) = P f(X) for every number of tokens, every permutation P and every weight.

What the call receives for each token, its position id for instance, moves with the token; so does a mask, on the axes
of queries and of keys. A branch of the call has to depend on nothing that moves.
"""

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
from orderproof.theorems.agreement import OutputProof, in_every_branch
from orderproof.theorems.facts.moved_fact import NOTHING, Axis, Motion, MovedFact, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact
from orderproof.theorems.facts.stored_constants import same_values
from orderproof.theorems.statement import BATCH, TOKENS
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.layers import Layer, repeated_layers
from orderproof.theorems.walks.moved_operation import (
    MovedFacts,
    MovedOperation,
    find_moved_rule,
    is_function,
    is_same_tensor,
    is_view,
)
from orderproof.theorems.walks.open_walk import OpenWalk, derive

FIXED = "fixed"  # the role of inputs that do not move


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


@dataclass(frozen=True)
class EntryMap:
    """The places at which order enters an output, and the proof for the graph with their constants made uniform."""

    proof: OutputProof
    entries: tuple[Node, ...]


def prove_equivariance(graphs: Sequence[OpenGraph], roles: Sequence[str], solver: Solver) -> dict[str, OutputProof]:
    """Prove equivariance to every permutation of the tokens for each output.

    Args:
        graphs: The recordings of the call, one for each branch.
        roles: The role of each input: FIXED, or another text for one whose axes of tokens move.
        solver: Decides whether sizes are equal.

    """
    return in_every_branch(_prove_branch(graph, roles, solver) for graph in graphs)


def map_entries(graphs: Sequence[OpenGraph], roles: Sequence[str], solver: Solver) -> dict[str, EntryMap]:
    """Prove for each output that order enters at constants only, and list where they meet tokens.

    A constant that is not the same for every token is taken to be the same where it meets tokens, and so is the mask of
    causal attention. If the graph is then equivariant, order enters nowhere else.
    """
    walks = [walk(graph, roles, solver, without_order=True) for graph in graphs]
    proofs = in_every_branch(_outputs(graph, done) for graph, done in zip(graphs, walks, strict=True))
    found: dict[str, list[Node]] = {name: [] for name in proofs}
    for graph, done in zip(graphs, walks, strict=True):
        for name, output in graph.outputs.items():
            needed = ancestors([output])
            found.setdefault(name, []).extend(node for node in done.entries if node in needed)
    return {name: EntryMap(proof, tuple(found[name])) for name, proof in proofs.items()}


def _prove_branch(graph: OpenGraph, roles: Sequence[str], solver: Solver) -> dict[str, OutputProof]:
    return _outputs(graph, walk(graph, roles, solver))


def _outputs(graph: OpenGraph, done: MovedWalk) -> dict[str, OutputProof]:
    for question in graph.questions:
        fact = done.facts.get(question.node)
        if not isinstance(fact, MovedFact) or not fact.is_unmoved or fact.written is not None:
            failed = OutputProof(proved=False, reason=f"a branch depends on the order of tokens{question.line}")
            return dict.fromkeys(graph.outputs, failed)
    return {name: _decide(graph, node, done) for name, node in graph.outputs.items()}


def walk(graph: OpenGraph, roles: Sequence[str], solver: Solver, *, without_order: bool = False) -> MovedWalk:
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
                continue
            facts[node] = uniform_fact
            entries.append(node)
        if _compares_indices(graph, node, facts[node]) and _is_constant(graph, node, context):
            facts[node] = uniform(graph.shape(node), Motion.FREE)
            constants.append(node)
    return MovedWalk(facts, failures, tuple(entries), tuple(constants), tuple(context.assumptions))


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
    operands = [fact for x in node.all_input_nodes for fact in _listed(facts[x])]
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


def _listed(facts: MovedFacts) -> tuple[MovedFact, ...]:
    return facts if isinstance(facts, tuple) else (facts,)


def _decide(graph: OpenGraph, node: Node, done: MovedWalk) -> OutputProof:
    fact = done.facts.get(node)
    if fact is None:
        failed = _first_failure(node, done)
        return OutputProof(proved=False, reason=done.failures.get(failed, "") if failed else "", node=failed)
    if not isinstance(fact, MovedFact) or fact.written is not None:
        return OutputProof(proved=False, reason="the output is no tensor that was written")
    axes = [axis for dim in fact.dims for axis in dim]
    if any(axis.motion is Motion.STILL and axis.size is TOKENS for axis in axes) or any(
        axis.motion is Motion.MOVED and axis.size is not TOKENS for axis in axes
    ):
        return OutputProof(proved=False, reason="the output does not move with the tokens", node=node)
    every_depth = bool(inductive_layers(graph, node, done))
    return OutputProof(proved=True, every_depth=every_depth, assumptions=done.assumptions)


def _first_failure(node: Node, done: MovedWalk) -> Node | None:
    """The first node in graph order without a fact on which a node depends."""
    seen, queue, found = set(), [node], []
    while queue:
        one = queue.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in done.failures:
            found.append(one)
        queue += [n for n in one.all_input_nodes if n not in done.facts]
    return min(found, default=None)


def inductive_layers(graph: OpenGraph, output: Node, done: MovedWalk) -> list[Layer]:
    """The repeated layers, if each maps the fact about what enters it to the same fact; else none."""

    def matching(first: Node, second: Node) -> bool:
        return done.facts.get(first) is not None and done.facts.get(first) == done.facts.get(second)

    layers = repeated_layers(graph, output, matching)
    if not layers:
        return []
    invariant = done.facts[layers[-1].result]
    kept = all(done.facts[layer.entry] == invariant == done.facts[layer.result] for layer in layers)
    return layers if kept else []
