"""The facts of a walk against real runs: the node at which they are first contradicted."""

from __future__ import annotations

from collections.abc import Iterator

from torch.fx import Node

from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, walk_graph
from orderproof.auditing.search.law_runs import LawRuns
from orderproof.diagnosis.node_check import check_nodes
from orderproof.laws import ProvedLaw


def first_violating_node(search: LawRuns, repaired: LawWalk | None, needed: set[Node]) -> Node | None:
    """The first needed node whose value in real runs contradicts the facts of the repairing walk."""
    if repaired is None or search.runs.weights != "given":
        return None
    if repaired.captured is not (search.graph or search.context.captured):
        return None  # a graph without weights: the witness is of its tiny twin
    try:
        return next((node for nodes in _violating_nodes(search, repaired) for node in nodes if node in needed), None)
    except Exception as error:  # noqa: BLE001 - an operator of the graph may refuse float64 in any way
        search.note_internal(error)
    return None


def check_node_facts(context: AuditContext, law: ProvedLaw) -> str:
    """Check every fact at every node against real runs; the result in one line."""
    there = context.for_law(law).runnable
    done = walk_graph(there, law, there.captured)
    output, dims = next(iter(there.output_dims.items()))
    pairs = [list(nodes) for nodes in _violating_nodes(LawRuns(there, law, output, dims, None), done)]
    bad = [node.name for nodes in pairs for node in nodes]
    if bad:
        return f"node check: {len(bad)} facts contradicted, first at {bad[0]}: an error in the prover; please report it"
    return f"node check: the facts of {len(done.walk.facts)} nodes hold in {len(pairs)} pairs of float64 runs"


def _violating_nodes(search: LawRuns, done: LawWalk) -> Iterator[Iterator[Node]]:
    """The nodes whose values contradict the facts of a walk, in each pair of runs of the law."""
    context = search.context
    tokens, others = search.tokens(context.token_count)
    base = search.runs.graph_inputs  # of an image: its patches are replaced
    for change, generator, case in search.law.proof_cases(context.token_count, context.batch_size):
        second = search.changed(tokens, others, change)
        if context.subject.patch_embedding_path is None:
            found = check_nodes(done.captured, done.walk.facts, tokens.inputs, second, generator=generator, case=case)
        else:
            found = check_nodes(
                done.captured, done.walk.facts, base, base, generator=generator, case=case,
                starts=(tokens.inputs[0], second[0]),
            )  # fmt: skip
        yield (violation.node for violation in found)
