"""Certificates of proved laws, built from the walks that proved them."""

from __future__ import annotations

from typing import Any

from orderproof.auditing.decide.completion import MAX_ROUNDS
from orderproof.auditing.decide.proof import proof_scope
from orderproof.auditing.explain.entries import uniform_text
from orderproof.auditing.explain.uniform_entries import make_entries_uniform
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, Weights, start_axes, walk_graph
from orderproof.diagnosis.certificate import build_certificate
from orderproof.diagnosis.uniform_constants import make_uniform
from orderproof.laws import ProvedLaw, find_proved_law
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.recording.captured_graph import ancestors
from orderproof.records.audit import Finding


def certificates_of(context: AuditContext, finding: Finding) -> list[dict[str, Any]]:
    """The certificates of a finding: one for each relation of a proved law, none if neither it nor its map is proved.

    Raises `ValueError` if the context was made without `keep_walks`.
    """
    if not context.keep_walks:
        raise ValueError(
            "expected a context made with keep_walks=True, which keeps the walks of proofs; got one without"
        )
    completed = finding.verdict != "proved"
    if completed and (finding.completion is None or finding.completion.verdict != "proved"):
        return []
    called = context.in_call_mode(finding.call_mode or DEFAULT_SETTING)
    assert isinstance(called, AuditContext), called
    law = find_proved_law(finding.law).in_call_mode(finding.call_mode)
    context = called.for_law(law)
    kept = [p.walk for p in context.walks if (p.output, p.completed) == (finding.output, completed)]
    relations = law.subrelations(context.batch_size)
    walks = [walk for relation in relations for walk in kept if walk.law == relation]
    made = (certificate_of_walk(context, walk, finding.output) for walk in walks)
    return [certificate for certificate in made if certificate is not None]


def certificate_of_walk(context: AuditContext, walk: LawWalk, output: str) -> dict[str, Any] | None:
    """The certificate that a walk gives for one output; None if it does not prove the law for it."""
    law, captured, dims = walk.law, walk.captured, context.dims_for(walk.law, output)
    fact = walk.walk.fact(captured.outputs[output])
    if law.missing_property(fact, dims, context.token_count, context.batch_size) is not None:
        return None
    changed = uniform_text(captured, walk.constants)
    subject = context.subject.part_and_name
    if law.family == "independence":
        dims = dims[:1]  # of attention weights [token, token] the law is about the rows
    needed, starts = ancestors([captured.outputs[output]]), start_axes(context, captured)
    return build_certificate(
        captured, walk.walk, law=law.name, code=law.code, family=law.family,
        relation=law.relation(context.token_count, context.batch_size), output=output,
        dims=[(t.dim, t.prefix_length) for t in dims],
        inputs={node: axis for node, axis in starts.items() if node in needed or node.op == "placeholder"},
        subject=f"{subject} with {changed}" if changed else subject,
        weights=walk.weights, needed=needed,
        assumptions=proof_scope(context, walk).assumptions,
    )  # fmt: skip


def certificate_for(
    context: AuditContext,
    law: ProvedLaw,
    output: str,
    *,
    weights: Weights = "all",
    uniform: tuple[str, ...] = (),
    completed: bool = False,
) -> dict[str, Any] | None:
    """Prove a law for one output and return its certificate; None if it is not proved.

    `completed`: for the graph with the constants of the entry map made uniform.
    """
    captured = context.captured
    if uniform:
        captured = make_entries_uniform(context, law, captured, uniform)
    for _ in range(MAX_ROUNDS if completed else 0):
        repaired = walk_graph(context, law, captured, weights=weights, repairing=True)
        needed = ancestors([captured.outputs[output]])
        breaks = [b for b in repaired.walk.breaks if b.node in needed]
        if not breaks:
            break
        captured, _count = make_uniform(captured, breaks)
    return certificate_of_walk(context, walk_graph(context, law, captured, weights=weights), output)
