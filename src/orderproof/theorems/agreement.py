"""Prove a law of a module for every number of tokens, every number of rows and every value of its fixed inputs.

Machine-checked (proofs/symbolic/steps.v): implication_step, branch_step.
Not machine-checked: the decisions of the solver, and that the recording is the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orderproof.logic.solver import Solver
from orderproof.number_limits import masks_from
from orderproof.recording.open_recording import OpenGraph
from orderproof.theorems.branches import walk_branch
from orderproof.theorems.facts.open_fact import OpenFact, index
from orderproof.theorems.least_mask import least_mask
from orderproof.theorems.output_proof import OutputProof, failures_before, in_every_branch
from orderproof.theorems.reasons import why_not_shown
from orderproof.theorems.statement import BATCH, TOKENS, Statement
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.depth import holds_at_every_depth
from orderproof.theorems.walks.open_walk import OpenWalk


def prove_agreement(
    graphs: Sequence[OpenGraph], roles: Sequence[str], statement: Statement, solver: Solver
) -> dict[str, OutputProof]:
    """Prove a statement for each output.

    What is not proved is tried once more with the masks of the call that are small, as -10000.

    Args:
        graphs: The recordings of the call, one for each branch.
        roles: The role of each input: TOKEN_INPUT, that of an input that both runs share, or another text.
        statement: The statement.
        solver: Decides implications.

    """
    found = in_every_branch(_prove_branch(graph, roles, statement, solver) for graph in graphs)
    size = None if all(one.proved for one in found.values()) else least_mask(graphs)
    if size is None:
        return found
    with masks_from(size):
        again = in_every_branch(_prove_branch(graph, roles, statement, solver) for graph in graphs)
    better = {name: replace(one, least_mask=size) for name, one in again.items() if one.proved}
    return {name: one if one.proved else better.get(name, one) for name, one in found.items()}


def _decide(graph: OpenGraph, name: str, done: OpenWalk, statement: Statement, context: Context) -> OutputProof:
    node = graph.outputs[name]
    fact = done.facts.get(node)
    if fact is None:
        failed = next(failures_before(node, done.facts, done.failures), None)
        return OutputProof(proved=False, reason=done.failures.get(failed, "") if failed else "", node=failed)
    if not isinstance(fact, OpenFact):
        return OutputProof(proved=False, reason="the output is several tensors")
    rows = [k for k, size in enumerate(fact.sizes) if size is BATCH]
    tokens = [k for k, size in enumerate(fact.sizes) if size is TOKENS]
    token = index(tokens[0]) if tokens else statement.pooled
    if len(rows) != 1 or token is None:
        return OutputProof(proved=False, reason="the output has no dimension of rows and tokens")
    goal = statement.shown(index(rows[0]), token)
    if context.proves(fact.same, fact.sizes, goal):
        every_depth = holds_at_every_depth(graph, done, node, context)
        return OutputProof(proved=True, every_depth=every_depth, assumptions=tuple(context.assumptions))
    at, reason = why_not_shown(fact, node, done.facts)
    return OutputProof(proved=False, reason=reason, node=at)


def _prove_branch(
    graph: OpenGraph, roles: Sequence[str], statement: Statement, solver: Solver
) -> dict[str, OutputProof]:
    if graph.is_cut_off:
        return {}
    found = walk_branch(graph, roles, statement, solver)
    if not found.possible:
        return {}
    return {name: _decide(graph, name, found.done, found.statement, found.context) for name in graph.outputs}
