"""A report in one sentence, and the meaning of its exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from orderproof.records.audit import Finding, Report
from orderproof.report import entry_map_phrases, phrases
from orderproof.report.theorem_phrases import lengths_text


def summary_sentence(report: Report) -> str:
    """The report in one sentence: what the model does with order, where order enters, and how the phrases.checks ended.

    ``bert: sees token order; order enters at one place, modeling_bert.py:104; 14 phrases.checks passed, none failed.``
    """
    first = next(iter(phrases.properties(report.findings)), None)
    clauses = [_trait_clause(first), _entry_clause(first)] if first is not None else []
    clauses.append(_check_clause(report.findings))
    if report.interrupted:
        clauses.append(f"interrupted after {phrases.pluralize(len(report.findings), 'finding')}")
    text = "; ".join(clause for clause in clauses if clause) or "no law was checked"
    return f"{report.subject.name}: {text}."


def _trait_clause(finding: Finding) -> str:
    verb, _, rest = phrases.property_name(finding).partition(" ")
    if finding.outcome == "no":
        return f"is not {rest}" if verb == "is" else f"does not {verb.removesuffix('s')} {rest}"
    text = f"{verb} {rest}".strip()
    return text if finding.outcome == "yes" else f"whether it {text} is undecided"


def _entry_clause(finding: Finding) -> str:
    places = list(dict.fromkeys(e.source or e.module for e in finding.entries if e.source or e.module))
    if not places or finding.law in entry_map_phrases.LEAK_TITLES:
        return ""
    if len(places) > 1:
        return f"order enters at {len(places):,} places, first {places[0]}"
    if finding.entries_complete is False:
        return f"order enters at {places[0]} and perhaps elsewhere"
    return f"order enters at one place, {places[0]}"


def _check_clause(findings: Iterable[Finding]) -> str:
    counted = phrases.checks(findings)
    if not counted:
        return ""
    titles = {
        outcome: [phrases.law_title(f) for f in counted if f.outcome == outcome]
        for outcome in ("pass", "fail", "undecided")
    }
    passed, failed, still_open = titles["pass"], titles["fail"], titles["undecided"]
    parts = [f"{phrases.pluralize(len(passed), 'check')} passed" if passed else "no check passed"]
    if theorems := _theorem_counts(f for f in counted if f.outcome == "pass"):
        parts[0] += f" ({theorems})"
    parts.append(f"{len(failed):,} failed ({', '.join(dict.fromkeys(failed))})" if failed else "none failed")
    causes = len([f for f in counted if f.outcome == "fail" and not f.same_cause_as])
    if causes < len(failed):
        parts[-1] += f" at {phrases.pluralize(causes, 'place')}"
    return ", ".join([*parts, *([f"{len(still_open):,} undecided"] if still_open else [])])


def _theorem_counts(findings: Iterable[Finding]) -> str:
    """``3 proved for every length from 2 to 128``, by range of lengths; empty if none is."""
    theorems = [f.theorem for f in findings if f.verdict == "proved" and f.theorem is not None and f.theorem.proved]
    counts = Counter(map(lengths_text, theorems))
    return ", ".join(f"{count:,} proved for {lengths}" for lengths, count in counts.most_common())


def exit_code_text(report: Report) -> str:
    """The meaning of the exit code, with every finding that decides it."""
    code = report.exit_code
    if report.interrupted:
        return f"interrupted; {phrases.pluralize(len(report.findings), 'finding')} so far"
    if code == 0 and not report.findings:
        return "no law was checked"
    if code == 0:
        return "every check passed" if phrases.checks(report.findings) else "nothing is expected of this model"
    findings = report.violations if code == 1 else report.undecided
    return "; ".join(expectation_text(f) for f in findings) + ("; no check failed" if code == 3 else "")


def expectation_text(finding: Finding) -> str:
    """``OP201 causal FAIL: expected to hold, it does not hold (witness)``; of a property the answer."""
    title = phrases.law_title(finding)
    if finding.kind == "property":
        return f"{title}: {phrases.property_name(finding)}: {phrases.OUTCOME_LABELS[finding.outcome]}"
    wanted = {"holds": "expected to hold", "fails": "expected to fail", "any": "no expectation"}[finding.expected]
    text = f"{title} {phrases.OUTCOME_LABELS[finding.outcome]}: {wanted}"
    if not (known := phrases.evidence_kind(finding)):
        return text
    return f"{text}, {'it does not hold' if finding.verdict == 'refuted' else 'it holds'} ({known})"
