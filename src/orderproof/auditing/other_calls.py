"""Runs of a proved law in calls of which nothing is proved: at other lengths, and with other attention masks.

A proof without a theorem is about one length and one mask, and a program may branch on either. Runs prove nothing: the
scope of the finding names those that agree. A violation among them is decided by the audit of that call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from orderproof.auditing.context import AuditContext
from orderproof.auditing.findings import undecide
from orderproof.auditing.implied_expectation import expected_as_in_proved_call
from orderproof.auditing.witness import WitnessSearch
from orderproof.batch_layout import PAD_LAYOUTS
from orderproof.laws import ProvedLaw
from orderproof.laws.measured.lengths import matrix_weight_count
from orderproof.models import Subject
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.prover.recording.open_sizes import LEAST_SIZE
from orderproof.records.audit import Finding

LENGTHS = (2, 3, 16, 33, 64, 65, 128, 257, 258, 320)  # [tokens] around powers of two, where programs tend to branch
MAX_WORK = 2e9  # tokens times weights in matrices, of one run
MAX_SECONDS = 20.0  # after which no longer inputs are compared: a law has a time limit

ProveCall = Callable[[AuditContext, str], list[Finding]]  # the findings in a context and a call mode


def compare_other_calls(
    context: AuditContext, law: ProvedLaw, finding: Finding, prove_call: ProveCall, *, expects_same: bool
) -> Finding:
    """A proved finding with the calls that were compared, or the finding of a call that violates the law.

    ``expects_same``: neither the user nor the kind of the model states what is expected, so the law is expected to
    hold in every call.
    """
    if finding.verdict != "proved" or finding.vacuous or context.subject.patch_embedding_path is not None:
        return finding
    for compare in (_compare_lengths, _compare_masks):
        finding, violating = compare(context, law, finding)
        if violating is not None:
            found = prove_call(violating.context, violating.call_mode)
            return _decided(finding, found, violating.words, expects_same=expects_same)
    return finding


@dataclass(frozen=True)
class _Call:
    """A call that violates a law, and how it differs from the recorded one."""

    context: AuditContext
    call_mode: str
    words: str


def _compare_lengths(context: AuditContext, law: ProvedLaw, finding: Finding) -> tuple[Finding, _Call | None]:
    """The finding with the other lengths at which the law was compared, and the first that violates it."""
    call_mode = finding.call_mode or DEFAULT_SETTING
    lengths = lengths_without_theorem(context.runnable.subject, finding)
    there = context.in_call_mode(call_mode)
    if not lengths or isinstance(there, str):
        return finding, None
    search = _search(there, there, law.in_call_mode(call_mode), finding.output)
    agreeing, began = [], time.monotonic()
    for length in lengths:
        if time.monotonic() - began > MAX_SECONDS:
            break
        agrees = search.compare_at(length)
        if agrees is False:
            return finding, _Call(context.at_length(length), call_mode, f"{length} tokens")
        agreeing += [length] if agrees else []
    scope = finding.scope.model_copy(update={"compared_lengths": tuple(agreeing)})
    return finding.model_copy(update={"scope": scope}), None


def _compare_masks(context: AuditContext, law: ProvedLaw, finding: Finding) -> tuple[Finding, _Call | None]:
    """The finding with the other attention masks with which the law was compared, and the first that violates it."""
    recorded = context.in_call_mode(finding.call_mode or DEFAULT_SETTING)
    covered = finding.theorem is not None and finding.theorem.proved and finding.theorem.covers
    if finding.call_mode not in PAD_LAYOUTS or covered or isinstance(recorded, str):
        return finding, None
    agreeing = []
    for call_mode in law.call_modes_of_other_masks:
        there = context.runs_in_call_mode(call_mode)
        if isinstance(there, str):
            continue
        agrees = _search(recorded, there, law.in_call_mode(call_mode), finding.output).compare_at(context.length)
        if agrees is False:
            return finding, _Call(context, call_mode, "another attention mask")
        agreeing += [call_mode] if agrees else []
    scope = finding.scope.model_copy(update={"compared_masks": tuple(agreeing)})
    return finding.model_copy(update={"scope": scope}), None


def _search(recorded: AuditContext, there: AuditContext, law: ProvedLaw, output: str) -> WitnessSearch:
    """The runs of a call, whose outputs have the axes of the recorded one."""
    return WitnessSearch(there, law, output, recorded.for_law(law).dims_for(law, output), None)


def lengths_without_theorem(subject: Subject, finding: Finding) -> list[int]:
    """The lengths [tokens] at which to compare runs: those of a short list that no theorem covers."""
    theorem, longest = finding.theorem, MAX_WORK / max(matrix_weight_count(subject.module), 1)
    lengths = {*LENGTHS} - {finding.scope.length}
    if theorem is not None and theorem.proved and theorem.open_length and not theorem.conditions:
        least, greatest = theorem.least_length, theorem.greatest_length
        above = set() if greatest is None else {greatest + 1, 2 * greatest + 1}
        lengths = {n for n in lengths | above if n < least or (greatest is not None and n > greatest)}
    limit = longest if subject.max_length is None else min(longest, subject.max_length)
    return sorted(n for n in lengths if LEAST_SIZE <= n <= limit)


def _decided(finding: Finding, found: list[Finding], place: str, *, expects_same: bool) -> Finding:
    """The finding of the call that violates a law that is proved in another one."""
    proved = f"it is proved at {finding.scope.length} tokens"
    violated = next((f for f in found if f.output == finding.output and f.verdict == "refuted"), None)
    if violated is None or violated.witness is None:
        return undecide(finding, f"{proved}, and runs with {place} violate it")
    if violated.scope.length != finding.scope.length:
        witness = violated.witness.model_copy(update={"onset": f"{proved} and violated with {place}"})
        violated = violated.model_copy(update={"witness": witness})
    elif finding.call_mode != violated.call_mode:
        proved += " with pads at other places"
    return expected_as_in_proved_call(violated, proved) if expects_same else violated
