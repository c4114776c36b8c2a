"""The walk of a graph for one law, and the proof that it gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from torch.fx import Node

from orderproof.auditing.explain.entries import source_of, uniform_text
from orderproof.auditing.record.context import TWIN_ASSUMPTION, AuditContext
from orderproof.diagnosis.analysis import Analysis, analyze
from orderproof.diagnosis.certificate import graph_fingerprint, graph_records
from orderproof.diagnosis.domain.constants import Constants, draws_random_numbers
from orderproof.laws import ProvedLaw, TokenAxis
from orderproof.recording.captured_graph import CapturedGraph, ancestors, module_path
from orderproof.records.audit import (
    RECORDED_CALL_ASSUMPTION,
    SEPARATE_INPUTS_ASSUMPTION,
    TRACED_ASSUMPTION,
    Proof,
    ProofStep,
    Scope,
)

Weights = Literal["all", "these"]
SHOWN_CHANGES = 4


@dataclass
class LawWalk:
    """The facts of a graph for one law, and how they were derived."""

    law: ProvedLaw
    captured: CapturedGraph
    constants: Constants
    walk: Analysis
    weights: Weights


def walk_graph(
    context: AuditContext, law: ProvedLaw, captured: CapturedGraph, *, weights: Weights = "all", repairing: bool = False
) -> LawWalk:
    """Derive the facts of a graph for a law; `repairing` goes on after a break as if the law held there."""
    constants = Constants(
        captured.graph,
        captured.state,
        captured.values,
        parameters=captured.parameters,
        trust_parameters=weights == "these",
    )
    facts = {
        n: law.input_fact(tuple(int(s) for s in n.meta["val"].shape), axis)
        for n, axis in start_axes(context, captured).items()
    }
    analysis = analyze(captured.graph, constants, facts, continue_after_break=repairing)
    return LawWalk(law, captured, constants, analysis, weights)


def input_axes(context: AuditContext, captured: CapturedGraph) -> dict[Node, TokenAxis]:
    """The nodes at which a walk of this graph starts (the graph may be rewritten), and the token axis of each."""
    if captured.start is not None:
        return {captured.start: 1}
    return dict(zip(captured.inputs, context.subject.token_axes, strict=True))


def start_axes(context: AuditContext, captured: CapturedGraph) -> dict[Node, TokenAxis]:
    """The inputs, and the nodes that draw random numbers: these have no token axis, and both runs draw the same."""
    if captured.start is not None:
        return input_axes(context, captured)
    return input_axes(context, captured) | dict.fromkeys(filter(draws_random_numbers, captured.graph.nodes))


def proof_scope(context: AuditContext, done: LawWalk, weights: Weights, *, states_uniform: bool = True) -> Scope:
    """The scope of a proof, with everything that it assumes.

    ``states_uniform``: also the constants that were made uniform, where the record does not state them itself.
    """
    captured = done.captured
    assumptions = [RECORDED_CALL_ASSUMPTION, *done.walk.assumptions]
    fixed = [node.name for node, axis in input_axes(context, captured).items() if axis is None]
    if fixed:
        assumptions.append(f"the same in both runs: input {', '.join(fixed)}")
    if len(captured.inputs) > 1:
        assumptions.append(SEPARATE_INPUTS_ASSUMPTION)
    if drawn := [n.name for n in start_axes(context, captured) if draws_random_numbers(n)]:
        assumptions.append(f"the same random numbers in both runs: {', '.join(drawn[:SHOWN_CHANGES])}")
    if states_uniform and (text := uniform_text(captured, done.constants)):
        assumptions.append(f"of another model: {text}")
    if captured.changed_state:
        assumptions.append(f"of one call: the call changes {', '.join(captured.changed_state[:SHOWN_CHANGES])}")
    if captured.outside:
        assumptions.append(f"with the same answers of {', '.join(captured.outside[:SHOWN_CHANGES])} at every call")
    assumptions += captured.assumptions
    if captured.without:
        assumptions.append(f"{captured.without} off: computed by torch's operators one by one")
    if captured.patched_because:
        assumptions.append(f"{TRACED_ASSUMPTION} {captured.patched_because}")
    if captured.exported_because:
        assumptions.append(f"as compiled: recorded by torch.export, because {captured.exported_because}")
    if context.runnable is not context:
        assumptions.append(TWIN_ASSUMPTION)
    return Scope(
        length=context.token_count,
        weights=weights,
        tensors_read=tuple(sorted(done.walk.used_names)),
        assumptions=tuple(assumptions),
    )


def build_proof(done: LawWalk, output: str) -> Proof:
    """The steps on which the output depends."""
    needed = ancestors([done.captured.outputs[output]])
    lines, kinds = [], set()
    for node in done.captured.graph.nodes:
        lemma = done.walk.lemmas.get(node, "")
        if node not in needed or node.op != "call_function" or lemma in ("", "same_in_both_runs", "part_of_a_tuple"):
            continue
        fact = done.walk.facts[node]
        kinds.add(done.walk.first_occurrence.get(node, node))
        text = "; ".join(f.describe() for f in fact) if isinstance(fact, tuple) else fact.describe()
        lines.append(
            ProofStep(
                node=node.name,
                operator=str(node.target),
                lemma=lemma,
                fact=text,
                module=module_path(node),
                source=source_of(node)[0],
            )
        )
    counts = Counter(line.lemma for line in lines)
    return Proof(
        step_count=len(lines), distinct_step_count=len(kinds), lemma_counts=dict(counts.most_common()),
        steps=tuple(lines), graph_fingerprint=graph_fingerprint(graph_records(done.captured, needed)),
    )  # fmt: skip
