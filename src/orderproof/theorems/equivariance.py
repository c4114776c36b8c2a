"""Prove f(P X) = P f(X) for every number of tokens, every permutation P and every weight.

What the call receives for each token, its position id for instance, moves with the token; so does a mask, on the axes
of queries and of keys. A branch of the call has to depend on nothing that moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch.fx import Node

from orderproof.logic.solver import Solver
from orderproof.recording.captured_graph import ancestors
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.facts.moved_fact import Motion, MovedFact
from orderproof.theorems.output_proof import OutputProof, failures_before, in_every_branch
from orderproof.theorems.statement import TOKENS
from orderproof.theorems.walks.layers import Layer, repeated_layers
from orderproof.theorems.walks.moved_walk import MovedWalk, walk_moved


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
    walks = [walk_moved(graph, roles, solver, without_order=True) for graph in graphs]
    proofs = in_every_branch(_outputs(graph, done) for graph, done in zip(graphs, walks, strict=True))
    found: dict[str, list[Node]] = {name: [] for name in proofs}
    for graph, done in zip(graphs, walks, strict=True):
        for name, output in graph.outputs.items():
            needed = ancestors([output])
            found.setdefault(name, []).extend(node for node in done.entries if node in needed)
    return {name: EntryMap(proof, tuple(found[name])) for name, proof in proofs.items()}


def _prove_branch(graph: OpenGraph, roles: Sequence[str], solver: Solver) -> dict[str, OutputProof]:
    return _outputs(graph, walk_moved(graph, roles, solver))


def _outputs(graph: OpenGraph, done: MovedWalk) -> dict[str, OutputProof]:
    for question in graph.questions:
        fact = done.facts.get(question.node)
        if not isinstance(fact, MovedFact) or not fact.is_unmoved or fact.written is not None:
            failed = OutputProof(proved=False, reason=f"a branch depends on the order of tokens{question.line}")
            return dict.fromkeys(graph.outputs, failed)
    return {name: _decide(graph, node, done) for name, node in graph.outputs.items()}


def _decide(graph: OpenGraph, node: Node, done: MovedWalk) -> OutputProof:
    fact = done.facts.get(node)
    if fact is None:
        failed = min(failures_before(node, done.facts, done.failures), default=None)
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
