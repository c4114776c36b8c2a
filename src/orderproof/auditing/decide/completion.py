"""Completeness of an entry map: the graph with the constants of its entries made uniform is proved and run."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from orderproof.auditing.decide.proof import Weights, build_proof, proof_scope, walk_graph
from orderproof.auditing.explain.entries import origin_of, source_of
from orderproof.auditing.record.context import AuditContext, ProvedOutput
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.diagnosis.rule import RelationBreak
from orderproof.diagnosis.uniform_constants import can_be_uniform, make_uniform
from orderproof.errors import UsageError
from orderproof.laws import ProvedLaw, TokenDim, entry_map_law
from orderproof.recording.captured_graph import CapturedGraph, ancestors, module_path
from orderproof.records.audit import Completion, Deviation, Scope

MAX_ROUNDS = 3  # of making constants uniform: a repaired constant can reveal another one


def complete_entry_map(
    context: AuditContext,
    law: ProvedLaw,
    captured: CapturedGraph,
    output: str,
    dims: tuple[TokenDim, ...],
    breaks: list[RelationBreak],
    weights: Weights,
) -> Completion:
    """Prove the graph with the constants at these breaks made uniform, and run it; keep its walk for a certificate."""
    total = 0
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
            consulted = strict.walk.used_names
            covers: Weights = "these" if any(strict.constants.is_parameter(c) for c in consulted) else "all"
            deviation, contradicts = Deviation(), False
            if context.runnable is context:
                deviation, contradicts = WitnessSearch(context, law, output, dims, captured).deviation()
            agrees = not contradicts
            if agrees and context.keep_walks:
                context.walks.append(ProvedOutput(output, completed=True, walk=strict))
            return Completion(
                verdict="proved" if agrees else "undecided", uniform_operand_count=total,
                scope=proof_scope(context, strict, covers, states_uniform=False),
                proof=build_proof(strict, output), deviation=deviation,
                reason="" if agrees else "two runs contradict the proof: an error in the prover; please report it",
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


def make_entries_uniform(
    context: AuditContext, law: ProvedLaw, captured: CapturedGraph, patterns: Iterable[str]
) -> CapturedGraph:
    """The graph with the entries that match a pattern made uniform. Raises `UsageError` if none matches."""
    repaired = walk_graph(context, law, captured, repairing=True)
    wanted = list(patterns)
    names = {
        b: (origin_of(b.operand, repaired.constants) if b.operand is not None else "is_causal", module_path(b.node))
        for b in repaired.walk.breaks
        if can_be_uniform(b)
    }
    chosen = [b for b, both in names.items() if any(fnmatch.fnmatch(x, f"*{p}*") for p in wanted for x in both)]
    if not chosen:
        have = "; ".join(sorted({f"{o} in {m or 'the top module'}" for o, m in names.values()})) or "none"
        raise UsageError(
            f"expected --uniform to match an entry of {context.subject.name}; entries are: {have}; "
            f"got {', '.join(wanted)}"
        )
    return make_uniform(captured, chosen)[0]


def with_uniform_positions(context: AuditContext, output: str, *, place: int) -> CapturedGraph | None:
    """The graph with the constants of its entry map set to their values at one token; None if one cannot be set."""
    walked = walk_graph(context, entry_map_law(), context.captured, repairing=True)
    needed = ancestors([context.captured.outputs[output]])
    breaks = [b for b in walked.walk.breaks if b.node in needed]
    if not all(can_be_uniform(b) for b in breaks):
        return None
    return make_uniform(context.captured, breaks, token=place)[0]
