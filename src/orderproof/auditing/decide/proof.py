"""The proof that a walk of a graph gives, and its scope."""

from __future__ import annotations

from collections import Counter

from orderproof.auditing.explain.entries import source_of, uniform_text
from orderproof.auditing.record.assumptions import TWIN_ASSUMPTION, change_assumptions, first_names
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, start_axes
from orderproof.diagnosis.domain.constants import draws_random_numbers
from orderproof.diagnosis.graph_fingerprint import graph_fingerprint
from orderproof.recording.captured_graph import ancestors, module_path
from orderproof.records.audit import (
    RECORDED_CALL_ASSUMPTION,
    SEPARATE_INPUTS_ASSUMPTION,
    TRACED_ASSUMPTION,
    Proof,
    ProofStep,
    Scope,
)


def proof_scope(context: AuditContext, done: LawWalk, *, states_uniform: bool = True) -> Scope:
    """The scope of a proof, with everything that it assumes.

    ``states_uniform``: also the constants that were made uniform, where the record does not state them itself.
    """
    captured = done.captured
    assumptions = [RECORDED_CALL_ASSUMPTION, *done.walk.assumptions]
    fixed = [node.name for node, axis in context.input_axes_of(captured).items() if axis is None]
    if fixed:
        assumptions.append(f"the same in both runs: input {', '.join(fixed)}")
    if len(captured.inputs) > 1:
        assumptions.append(SEPARATE_INPUTS_ASSUMPTION)
    if drawn := [n.name for n in start_axes(context, captured) if draws_random_numbers(n)]:
        assumptions.append(f"the same random numbers in both runs: {first_names(drawn)}")
    assumptions += [context.subject.mode] if context.subject.mode else []
    assumptions += uniform_assumption(done) if states_uniform else ()
    assumptions += change_assumptions(captured.changed_state)
    if captured.outside:
        assumptions.append(f"with the same answers of {first_names(captured.outside)} at every call")
    assumptions += captured.assumptions
    if captured.without:
        assumptions.append(f"{captured.without} off: computed by torch's operators one by one")
    if captured.patched_because:
        assumptions.append(f"{TRACED_ASSUMPTION} {captured.patched_because}")
    if context.runnable is not context:
        assumptions.append(TWIN_ASSUMPTION)
    wrapper = f"{context.subject.wrapped_path}." if context.subject.wrapped_path else ""
    return Scope(
        length=context.token_count,
        weights=done.covered_weights,
        tensors_read=tuple(sorted(name.removeprefix(wrapper) for name in done.walk.used_names)),
        assumptions=tuple(assumptions),
    )


def uniform_assumption(done: LawWalk | None) -> tuple[str, ...]:
    """The assumption that constants were made uniform, if they were."""
    text = "" if done is None else uniform_text(done.captured, done.constants)
    return (f"of another model: {text}",) if text else ()


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
        steps=tuple(lines), graph_fingerprint=graph_fingerprint(done.captured, needed),
    )  # fmt: skip
