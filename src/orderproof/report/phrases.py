"""Sentences and number formats that all renderers share."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator

from orderproof.records.audit import (
    RECORDED_CALL_ASSUMPTION,
    ComparisonRecord,
    Deviation,
    Finding,
    Measurement,
    Outcome,
    Proof,
    Report,
    Scope,
    SubjectRecord,
    Theorem,
    Verdict,
)
from orderproof.report.theorem_phrases import proof_scope_text

OUTCOME_LABELS: dict[Outcome, str] = {
    "pass": "PASS",
    "fail": "FAIL",
    "undecided": "UNDECIDED",
    "yes": "yes",
    "no": "no",
    "not_applicable": "not applicable",
}
PROOF_LABELS: dict[Verdict, str] = {
    "proved": "proved",
    "refuted": "refuted",
    "undecided": "undecided",
    "held": "measured",
    "not_applicable": "not applicable",
}

MEASUREMENT_NOTE = (
    "Each comparison computes the same output in two ways; its number is the largest relative difference between the "
    "two. If float32 does not decide it, it is repeated in float64. The positive control changes an input that must "
    "affect the output; if the output hardly changes, the comparisons are inconclusive."
)
NAMED_CALL_MODES = (  # call modes in which one law gives several findings
    "packed", "blocked", "padded right first", "padded left", "padded right", "no pads", "pads inside",
    "one real token", "one row of pads", "one row without pads",
)  # fmt: skip
OTHER_SEQUENCE = ("pads of ", "tokens of ")  # begin the call mode of a further sequence: pads of memory
PADDING_LAW = "padding"  # whose only call mode is `padded`


def escape_control_characters(text: str) -> str:
    """The text with every control and direction character as an escape sequence, so that none takes effect."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def pluralize(number: int, one: str, many: str = "") -> str:
    """``1 step``, ``1,204 steps``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def format_difference(value: float | None) -> str:
    """A difference, to two digits; an exact zero is ``0``."""
    return "not run" if value is None else "0" if value == 0 else f"{value:.2g}"


def cosine(value: float) -> str:
    """A cosine to four digits; one that rounds to 1 as its distance from 1."""
    gap = 1 - value
    if gap == 0:
        return "1"
    if abs(gap) < 5e-5:
        return f"1 {'-' if gap > 0 else '+'} {abs(gap):.1e}"
    return f"{value:.4f}"


def format_number(value: float | None) -> str:
    """A value to six digits."""
    return "unknown" if value is None else f"{value:.6g}"


def subject_line(subject: SubjectRecord) -> str:
    """Kind, size and origin of the model."""
    parts = [subject.kind, pluralize(subject.parameters, "parameter")]
    if subject.layers is not None:
        parts.append(pluralize(subject.layers, "layer"))
    return ", ".join(part for part in [*parts, subject.detail] if part)


def law_title(finding: Finding) -> str:
    """``OP101 permutation``; ``OP203 packing (packed)`` where a law has a finding for each of several call modes."""
    return f"{finding.code} {law_name(finding)}"


def law_name(finding: Finding) -> str:
    """The law's name, with the call mode where it has several, and with the engine of a port."""
    part = finding.output if finding.port is not None else shown_call_mode(finding)
    return f"{finding.law} ({part})" if part else finding.law


def shown_call_mode(finding: Finding) -> str:
    """The call mode where the law has findings for several; empty otherwise."""
    if finding.call_mode.startswith(OTHER_SEQUENCE):
        return finding.call_mode
    several = finding.call_mode in NAMED_CALL_MODES or (finding.call_mode == "padded" and finding.law != PADDING_LAW)
    return finding.call_mode if several else ""


def verdict_text(verdict: Verdict, scope: Scope, theorem: Theorem | None = None) -> str:
    """``proved for every value of every parameter``; with a theorem, for what it holds."""
    word = PROOF_LABELS[verdict]
    return f"{word} {proof_scope_text(scope, theorem)}" if verdict == "proved" else word


def length_text(scope: Scope) -> str:
    """The length of a proof."""
    return f"at length {scope.length}"


def values_used_text(scope: Scope, *, limit: int = 6) -> str:
    """The tensors whose values the proof read, or that it read none."""
    if not scope.tensors_read:
        return "no parameter's values were used"
    names = ", ".join(scope.tensors_read[:limit])
    rest = len(scope.tensors_read) - limit
    return f"values used: {names}" + (f" and {rest:,} more" if rest > 0 else "")


def lemma_counts(proof: Proof) -> list[tuple[str, int]]:
    """The lemmas a proof used, the most used first."""
    return sorted(proof.lemma_counts.items(), key=lambda item: (-item[1], item[0]))


def without_positions_text(completion_operands: int) -> str:
    """``with the 3 entries made the same for every position``."""
    entries = "entry" if completion_operands == 1 else f"{completion_operands:,} entries"
    return f"with the {entries} made the same for every position"


def summary_clause(finding: Finding) -> str:
    """One clause for a table: the witness, the comparisons, the scope or size of the proof, or the reason."""
    if finding.vacuous:
        return "vacuous: no token can see another, so the law says nothing about mixing"
    if finding.witness is not None:
        return f"{finding.witness.change}: differs by {format_difference(finding.witness.relative_difference)}"
    if finding.verdict == "held" and finding.measurement is not None:
        return comparison_summary(finding.measurement)
    if finding.verdict == "proved" and finding.theorem is not None:
        return proof_scope_text(finding.scope, finding.theorem)
    if finding.reason:
        return finding.reason
    if finding.proof is not None:
        return f"{pluralize(finding.proof.step_count, 'step')}, {values_used_text(finding.scope, limit=1)}"
    return ""


def evidence_kind(finding: Finding) -> str:
    """``proved``, ``measured`` or ``witness``; empty where nothing is known."""
    if finding.verdict in ("undecided", "not_applicable"):
        return ""
    if finding.verdict == "proved":
        return "proved"
    measured = finding.verdict == "held" or finding.measurement is not None or finding.port is not None
    return "measured" if measured else "witness"


def evidence_text(finding: Finding) -> str:
    """How an outcome is known, for a table: ``proved: for every length of at least 2, ...``."""
    evidence = ": ".join(part for part in (evidence_kind(finding), summary_clause(finding)) if part)
    if finding.kind != "check" or finding.expected != "fails" or not evidence_kind(finding):
        return evidence
    return f"{'does not hold, as expected' if finding.outcome == 'pass' else 'holds, and should not'}; {evidence}"


def checks(findings: Iterable[Finding]) -> list[Finding]:
    """The checks: failed ones first, then undecided ones, then those that passed; not those that do not apply."""
    order = ("fail", "undecided", "pass")
    return sorted(
        (f for f in findings if f.kind == "check" and f.outcome in order), key=lambda f: order.index(f.outcome)
    )


def properties(findings: Iterable[Finding]) -> list[Finding]:
    """The properties that describe the model, in the order of the report; not those that do not apply."""
    return [f for f in findings if f.kind == "property" and f.outcome != "not_applicable"]


def not_applicable(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """The laws that do not apply, by the reason: ``{"the model has no cache": ["OP401 cached_decoding", ...]}``."""
    titles: dict[str, list[str]] = {}
    for finding in findings:
        if finding.outcome == "not_applicable":
            named = titles.setdefault(finding.reason or "no reason is recorded", [])
            if law_title(finding) not in named:
                named.append(law_title(finding))
    return titles


def not_checked(report: Report) -> dict[str, list[str]]:
    """The laws that are expected of the model and were not tested, by the reason."""
    titles: dict[str, list[str]] = {}
    for finding in report.untested:
        named = titles.setdefault(finding.untested_because, [])
        if law_title(finding) not in named:
            named.append(law_title(finding))
    return titles


def property_name(finding: Finding) -> str:
    """``sees token order``; with the call mode where the law has several."""
    name = finding.trait or finding.law
    mode = shown_call_mode(finding)
    return f"{name} ({mode})" if mode else name


def measured_findings(report: Report) -> tuple[Finding, ...]:
    """The findings of measured laws with at least one comparison, in the order of the report."""
    return tuple(f for f in report.findings if f.measurement is not None and f.measurement.comparisons)


def comparison_summary(measurement: Measurement) -> str:
    """``3 comparisons, at most 9.4e-07 apart; the control 0.96; 1 more could not be run``."""
    completed = [c for c in measurement.comparisons if c.float32 is not None]
    parts = [pluralize(len(completed), "comparison")]
    if completed:
        most = max(completed, key=lambda c: c.float32 or 0.0)
        doubled = "" if most.float64 is None else f" ({format_difference(most.float64)} in float64)"
        parts[0] += (
            f", largest difference {format_difference(most.float32)}{doubled}" if most.float32 else ", no difference"
        )
    if measurement.control_difference is not None:
        parts.append(f"positive control {format_difference(measurement.control_difference)}")
    if len(completed) < len(measurement.comparisons):
        parts.append(f"{len(measurement.comparisons) - len(completed):,} more could not be run")
    if len(lengths := sorted({n for c in completed for n in c.lengths})) > 1:
        parts.append(f"{len(lengths)} lengths, {lengths[0]} to {lengths[-1]} tokens")
    return "; ".join(parts)


def comparison_note(record: ComparisonRecord) -> str:
    """Why a comparison was not possible or is in doubt, and the lengths at which it fails if it holds at others."""
    why = record.reason.removeprefix(f"{record.description}: ")
    partly = record.refuted_lengths and record.refuted_lengths != record.lengths
    failing = f"fails at {', '.join(map(str, record.refuted_lengths))} tokens, " if partly else ""
    holding = [str(n) for n in record.lengths if n not in record.refuted_lengths] if partly else []
    note = "" if why == record.description else why
    return "; ".join(part for part in (note, f"{failing}not at {', '.join(holding)}" if partly else "") if part)


def float32_text(record: ComparisonRecord) -> str:
    """The difference of a comparison in float32."""
    return "not possible" if record.float32 is None else format_difference(record.float32)


def float64_text(record: ComparisonRecord) -> str:
    """The difference of a comparison in float64; empty where float32 left no doubt."""
    if record.float64 is None and (record.float32 is None or record.verdict == "held"):
        return ""
    return format_difference(record.float64)


def control_text(finding: Finding) -> str:
    """How far the control of a measured law moved the output, or why it was not run."""
    signal = finding.measurement.control_difference if finding.measurement is not None else None
    if signal is not None:
        return format_difference(signal)
    return "not needed: a difference was seen" if finding.verdict == "refuted" else "not run"


def precision_ratio_text(deviation: Deviation) -> str:
    """How much smaller the difference is in float64, as a power of two."""
    if deviation.float32 is None or deviation.float64 is None:
        return ""
    if deviation.float64 == 0 or deviation.float32 == 0:
        return "exact" if deviation.float64 == 0 else ""
    power = round(math.log2(deviation.float64 / deviation.float32))
    return "the same: not rounding" if power == 0 else f"falls by 2^{power}: rounding" if power < -15 else f"2^{power}"


def assumptions(report: Report) -> dict[str, list[str]]:
    """Every assumption with the codes of the findings that rely on it; no codes where all findings do."""
    codes_by_text: dict[str, list[str]] = {}
    for finding in report.findings:
        for text in dict.fromkeys(_assumptions(finding)):
            codes_by_text.setdefault(text, []).append(finding.code)
    return {text: [] if len(codes) == len(report.findings) else codes for text, codes in codes_by_text.items()}


def _assumptions(finding: Finding) -> Iterator[str]:
    """The assumptions of a finding: of its theorem first; what this assumes of the call is not said again."""
    theorem = finding.theorem
    if theorem is not None and theorem.proved:
        yield from theorem.assumptions
        yield from (text for text in finding.scope.assumptions if text != RECORDED_CALL_ASSUMPTION)
    else:
        yield from finding.scope.assumptions
    if finding.completion is not None:
        yield from finding.completion.scope.assumptions


def main_output(report: Report) -> str:
    """The name of the first output: what the terminal shows in full."""
    return report.findings[0].output if report.findings else ""
