"""Completeness of an entry map: the graph with the constants of its entries made uniform is proved and run."""

from __future__ import annotations

from orderproof.auditing.decide.contradiction import contradiction_reason
from orderproof.auditing.decide.proof import build_proof, proof_scope
from orderproof.auditing.explain.entries import source_of
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, walk_graph
from orderproof.auditing.search.deviation import measured_deviation
from orderproof.auditing.search.law_runs import LawRuns
from orderproof.diagnosis.rule import RelationBreak
from orderproof.diagnosis.uniform_constants import can_be_uniform, make_uniform
from orderproof.laws import TokenDim
from orderproof.recording.captured_graph import ancestors
from orderproof.records.audit import Completion, Deviation, Scope

MAX_ROUNDS = 3  # of making constants uniform: a repaired constant can reveal another one


def complete_entry_map(
    context: AuditContext, done: LawWalk, output: str, dims: tuple[TokenDim, ...], breaks: list[RelationBreak]
) -> Completion:
    """Prove the graph with the constants at these breaks made uniform, and run it."""
    law, captured, weights, total = done.law, done.captured, done.weights, 0
    scope = Scope(length=context.token_count, weights=weights)
    current = breaks
    for _ in range(MAX_ROUNDS):
        stuck = [b for b in current if not can_be_uniform(b)]
        if stuck or not current:
            reason = "no constant is left to make uniform, and the law is not proved"
            if stuck:
                source, _text = source_of(stuck[0].node)
                place = f" ({source})" if source else ""
                reason = f"order enters through an operator, {stuck[0].node.target}{place}: {stuck[0].reason}"
            return Completion(verdict="undecided", uniform_operand_count=total, scope=scope, reason=reason)
        captured, count = make_uniform(captured, current)
        total += count
        strict = walk_graph(context, law, captured, weights=weights)
        missing = law.missing_property(strict.walk.fact(captured.outputs[output]), dims, context.token_count)
        if missing is None:
            deviation, reason = Deviation(), ""
            if context.runnable is context:
                search = LawRuns(context, law, output, dims, captured)
                deviation, contradicts = measured_deviation(
                    search, of_all_weights=strict.covered_weights == "all", of_entries=True
                )
                reason = contradiction_reason(search, deviation) if contradicts else ""
            agrees = not reason
            return Completion(
                verdict="proved" if agrees else "undecided", uniform_operand_count=total,
                scope=proof_scope(context, strict, states_uniform=False),
                proof=build_proof(strict, output), deviation=deviation,
                reason=reason,
            )  # fmt: skip
        again = walk_graph(context, law, captured, weights=weights, repairing=True)
        needed = ancestors([captured.outputs[output]])
        current = [b for b in again.walk.breaks if b.node in needed]
    return Completion(
        verdict="undecided",
        uniform_operand_count=total,
        scope=scope,
        reason=f"the map was not complete after {MAX_ROUNDS} rounds",
    )
