"""Completeness of an entry map for every number of tokens: the open graph without order is equivariant."""

from __future__ import annotations

from collections.abc import Iterable

from torch.fx import Node

from orderproof.auditing.decide.theorems import join_theorem, proved_lengths, theorem_of_the_program, without_theorem
from orderproof.auditing.explain.entries import operator_name, source_of
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.open_calls import OpenCalls
from orderproof.auditing.record.open_inputs import NoTheorem
from orderproof.laws import ProvedLaw
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.records.audit import Finding, Theorem
from orderproof.theorems.statement import Equivariance


def with_open_entry_map(context: AuditContext, law: ProvedLaw, finding: Finding) -> Finding:
    """The finding with the theorem that its entry map is complete, if it is complete at the recorded length."""
    done = finding.completion
    if done is None or done.verdict != "proved" or finding.call_mode:
        return finding
    calls = context.open_calls
    theorem = theorem_of_the_program(context, calls, DEFAULT_SETTING, lambda: _completeness(calls, law, finding))
    return finding.model_copy(update={"completion": done.model_copy(update={"theorem": theorem})})


def _completeness(calls: OpenCalls, law: ProvedLaw, finding: Finding) -> Theorem:
    statement = calls.statement(law, DEFAULT_SETTING)
    if not isinstance(statement, Equivariance):
        raise NoTheorem("the law is not that tokens are permuted")
    maps = calls.entry_maps(DEFAULT_SETTING)
    proofs = [(piece, {name: one.proof for name, one in found.items()}) for piece, found in maps]
    if finding.output not in proofs[0][1]:
        raise NoTheorem("it has no output of this name")
    theorem = join_theorem(finding.output, proofs, statement, calls.solver)
    if not theorem.proved:
        return theorem
    covered = proved_lengths(finding.output, proofs, calls.solver).pieces
    entries = [
        n for piece, found in maps if any(piece is one for one in covered) for n in found[finding.output].entries
    ]
    more = _places(entries) - {entry.source or entry.operator for entry in finding.entries}
    if more:
        return without_theorem(f"at another length order enters at {', '.join(sorted(more))} too")
    return theorem


def _places(nodes: Iterable[Node]) -> set[str]:
    return {source_of(node)[0] or operator_name(node) for node in nodes}
