"""Decide one law for one subject, in each of its call modes, and for every length."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from orderproof.auditing.decide.one_side import ProveInMode, possible_call_modes, proved_on_one_side
from orderproof.auditing.decide.relation import AS_GIVEN, ProofOptions, Relation
from orderproof.auditing.decide.theorem_certificates import with_rechecked_theorems
from orderproof.auditing.decide.theorems import with_open_entry_map, with_theorem, with_unfinished_theorems
from orderproof.auditing.explain.findings import finding_of
from orderproof.auditing.explain.implied_expectation import expected_as_in_plain_call
from orderproof.auditing.explain.notes import note_rows_that_stay, note_unchecked_mask
from orderproof.auditing.explain.pooling_line import with_pooling_line
from orderproof.auditing.explain.remedies import with_remedy
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.search.other_calls import ProveCall, compare_other_calls
from orderproof.laws import ProvedLaw
from orderproof.models.settings import DEFAULT_SETTING
from orderproof.records.audit import Deviation, Expectation, Finding, Scope
from orderproof.time_limit import TimeLimitExceeded, time_limit


def prove_law(context: AuditContext, law: ProvedLaw, options: ProofOptions = AS_GIVEN) -> tuple[Finding, ...]:
    """The findings of one law: one for each output in each call mode of the law, and for each further sequence."""
    found = _prove_for_sequence(context, law, options)
    others = context.other_sequences if law.sequence_part else {}
    for name, other in others.items():
        of_other = (
            f.model_copy(update={"call_mode": law.call_mode_of_sequence(name, f.call_mode)})
            for f in _prove_for_sequence(other, law, options)
        )
        found = (*found, *of_other)
    return tuple(f for f in found if f.verdict != "not_applicable") or found[:1] if others else found


def _prove_for_sequence(context: AuditContext, law: ProvedLaw, options: ProofOptions) -> tuple[Finding, ...]:
    """The same for one sequence of tokens."""
    if context.subject.whole_rows_reason and not law.replaces_whole_rows:
        expected = options.expect or law.expected(context.subject.model_kind)
        return (_not_applicable(context, law, expected, context.subject.whole_rows_reason),)
    if law.replaces_whole_rows:
        note_rows_that_stay(context, law)
    call_modes = possible_call_modes(context, law)
    results = [finding for mode in call_modes for finding in _prove_in_call_mode(context, law, mode, options)]
    if options.every_length and not options.uniform_entries:
        for stated in law.call_modes_without_theorem:
            if not _is_without_theorem(results):
                continue
            mode = context.padded_mode if stated == "padded" else stated
            if isinstance(context.in_call_mode(mode), str):
                note_unchecked_mask(context, law, results)
            else:
                found = _prove_in_call_mode(context, law, mode, options)
                results += [expected_as_in_plain_call(f, results, unstated=options.states_nothing) for f in found]

        def prove_mode(mode: str) -> list[Finding]:
            return _prove_in_call_mode(context, law, mode, options)

        results = [proved_on_one_side(context, law, finding, prove_mode) for finding in results]

        def prove_call(there: AuditContext, mode: str) -> list[Finding]:
            return _prove_in_call_mode(there, law, mode, options)

        same = options.states_nothing and law.kind == "check"
        if options.other_calls:
            results = _with_other_calls(context, law, results, prove_mode, prove_call, expects_same=same)
    results = [with_remedy(finding, law) for finding in results]
    return tuple(with_pooling_line(context, f) if law.call_modes_of_one_side else f for f in results)


def _with_other_calls(
    context: AuditContext, law: ProvedLaw, results: list[Finding], prove_mode: ProveInMode, prove_call: ProveCall, *,
    expects_same: bool,
) -> list[Finding]:  # fmt: skip
    """The findings with other calls that were compared. What is proved stays proved where time runs out.

    An output without tokens may read a pad of the wrong side in other calls only: at a length where it is one.
    """

    def compared_finding(finding: Finding) -> Finding:
        found = compare_other_calls(context, law, finding, prove_call, expects_same=expects_same)
        if finding.verdict == "refuted":
            return found
        better = proved_on_one_side(context, law, found, prove_mode, sides=1)
        if better is found or better.call_mode == finding.call_mode:
            return found
        return compare_other_calls(context, law, better, prove_call, expects_same=expects_same)

    compared: list[Finding] = []
    try:
        compared.extend(map(compared_finding, results))
    except TimeLimitExceeded:
        context.notes.append(f"{law.name}: there was no time to compare calls of other lengths, rows and masks")
    return [*compared, *results[len(compared) :]]


def _prove_in_call_mode(context: AuditContext, law: ProvedLaw, call_mode: str, options: ProofOptions) -> list[Finding]:
    """The findings of one law in one call mode: one for each output."""
    began = time.perf_counter()
    there, in_mode = context.in_call_mode(call_mode), law.in_call_mode(call_mode)
    # With entries made uniform it is another model, for which its kind expects nothing.
    expected = options.expect or ("any" if options.uniform_entries else law.expected(context.subject.model_kind))
    if isinstance(there, str):
        found = [_not_applicable(context, law, expected, there)]
    else:
        there = there.for_law(in_mode)
        relations = [Relation(there, part, options) for part in in_mode.subrelations(there.batch_size)]
        by_output = list(zip(*(one.findings(expected) for one in relations), strict=True))
        found = [combine_relations(each) for each in by_output]
        if options.every_length and not options.uniform_entries and options.weights == "all":
            seconds = options.theorem_seconds
            decided = [_decided_by_theorem(context, law, call_mode, relations, each, seconds) for each in by_output]
            found = [better or f for better, f in zip(decided, found, strict=True)]
    update = {
        "seconds": (time.perf_counter() - began) / len(found),
        "call_mode": "" if call_mode == DEFAULT_SETTING else call_mode,
    }
    if options.every_length and not options.uniform_entries:  # which make another model of it
        found = [
            f if f.theorem else _for_every_length(context, law, call_mode, f, options.theorem_seconds) for f in found
        ]
    return [f.model_copy(update=update) for f in found]


def _for_every_length(
    context: AuditContext, law: ProvedLaw, call_mode: str, finding: Finding, seconds: float | None
) -> Finding:
    """The finding with what is proved for every length. That takes time of its own: the proof at one length stays."""
    try:
        with time_limit(seconds, apart=True):
            found = with_open_entry_map(context, law, with_theorem(context, law, call_mode, finding))
            return with_rechecked_theorems(context, call_mode, found)
    except TimeLimitExceeded:
        return with_unfinished_theorems(finding, f"the proof was not finished within {seconds:g} s")


def _decided_by_theorem(
    context: AuditContext, law: ProvedLaw, call_mode: str, relations: Sequence[Relation], found: Sequence[Finding],
    seconds: float | None,
) -> Finding | None:  # fmt: skip
    """The finding where a theorem proves what no rule does at the recorded length; None if there is none.

    A proof at that length tests the rules of a theorem. Without one, the recheck has to accept it, and runs to agree.
    """
    missing = [f.output in one.without_rule for one, f in zip(relations, found, strict=True)]
    if not any(missing) or any(f.verdict != "proved" and not m for f, m in zip(found, missing, strict=True)):
        return None
    try:
        with time_limit(seconds, apart=True):
            proved = with_theorem(context, law, call_mode, found[0].model_copy(update={"verdict": "proved"}))
            theorem = with_rechecked_theorems(context, call_mode, proved, always=True).theorem
    except TimeLimitExceeded:
        return None
    if theorem is None or not theorem.proved:
        return None
    decided = [
        one.finding_of_theorem(f.output, f.expected) if m else f
        for one, f, m in zip(relations, found, missing, strict=True)
    ]
    return combine_relations(decided).model_copy(update={"theorem": theorem})


def _is_without_theorem(findings: Sequence[Finding]) -> bool:
    """True if a law is proved for a call without a mask, and no theorem covers those with one."""
    return any(f.verdict == "proved" and not (f.theorem and f.theorem.covers) for f in findings)


def _not_applicable(context: AuditContext, law: ProvedLaw, expected: Expectation, reason: str) -> Finding:
    return finding_of(law, "not_applicable", reason, expected=expected, scope=Scope(length=context.token_count))


def combine_relations(findings: Sequence[Finding]) -> Finding:
    """The finding of a law of several relations: proved if each relation is, else the worst of their findings."""
    worst = min(findings, key=lambda f: ("refuted", "undecided", "not_applicable", "proved").index(f.verdict))
    if len(findings) == 1 or worst.verdict != "proved":
        return worst
    reason = worst.reason or f"{len(findings)} relations, each proved separately"
    deviation = Deviation(
        float32=_largest(f.deviation.float32 for f in findings), float64=_largest(f.deviation.float64 for f in findings)
    )
    return worst.model_copy(update={"reason": reason, "deviation": deviation, "scope": _combined_scope(findings)})


def _largest(sizes: Iterable[float | None]) -> float | None:
    return max((size for size in sizes if size is not None), default=None)


def _combined_scope(findings: Sequence[Finding]) -> Scope:
    """The common scope of several proofs, with the assumptions of all of them."""
    scopes = [f.scope for f in findings]
    return scopes[0].model_copy(
        update={
            "weights": "these" if any(s.weights == "these" for s in scopes) else "all",
            "tensors_read": tuple(sorted({name for s in scopes for name in s.tensors_read})),
            "assumptions": tuple(dict.fromkeys(text for s in scopes for text in s.assumptions)),
        }
    )
