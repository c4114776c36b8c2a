"""The findings of a report by law: one row for each law, with the findings of its outputs inside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orderproof.records.audit import Finding, Outcome
from orderproof.report import phrases
from orderproof.report.theorem_phrases import lengths_text, no_theorem_text, rows_text

_WORST_FIRST: tuple[Outcome, ...] = ("fail", "undecided", "pass", "yes", "no")


@dataclass(frozen=True)
class LawGroup:
    """The findings of one law in one call mode, of one kind: one for each output to which the law applies.

    The output of a port is its engine, and each engine has a group of its own.
    """

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding that decides the row: the worst of a check, that of the first output of a property."""
        if self.findings[0].kind == "property":
            return self.findings[0]
        return min(self.findings, key=lambda f: _WORST_FIRST.index(f.outcome))

    @property
    def outcome(self) -> Outcome:
        """The outcome of the row."""
        return self.first.outcome

    @property
    def outcomes_differ(self) -> bool:
        """True if the outputs have different outcomes."""
        return len({f.outcome for f in self.findings}) > 1

    @property
    def name(self) -> str:
        """The name of the law, or the property as a verb phrase."""
        return (phrases.law_name if self.first.kind == "check" else phrases.property_name)(self.first)

    @property
    def short_evidence(self) -> str:
        """How the outcome is known, in a few words: ``proved for every length from 2 to 512``."""
        text = short_evidence(self.first)
        if self.outcomes_differ:
            others = [f"{phrases.OUTCOME_LABELS[f.outcome].lower()} for {f.output}" for f in self.findings[1:]]
            return "; ".join([text, *others])
        proved = [f for f in self.findings if f.verdict == "proved" and not f.vacuous]
        if len(proved) == len(self.findings) and len({lengths_of_theorem(f) for f in proved}) > 1:
            outputs: dict[str, list[str]] = {}
            for f in proved:
                outputs.setdefault(short_evidence(f), []).append(f.output)
            return "; ".join(f"{evidence}: {', '.join(names)}" for evidence, names in outputs.items())
        return text


def law_groups(findings: Iterable[Finding]) -> list[LawGroup]:
    """The checks and properties by law, in the order of the report; not those that do not apply."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for f in findings:
        if f.outcome != "not_applicable":
            engine = f.output if f.port is not None else ""
            groups.setdefault((f.code, f.law, f.call_mode, f.kind, engine), []).append(f)
    return [LawGroup(tuple(members)) for members in groups.values()]


def groups_with(findings: Iterable[Finding], outcome: Outcome) -> list[LawGroup]:
    """The checks by law whose worst outcome is this one."""
    return [g for g in law_groups(findings) if g.first.kind == "check" and g.outcome == outcome]


def property_groups(findings: Iterable[Finding]) -> list[LawGroup]:
    """The properties by law."""
    return [g for g in law_groups(findings) if g.first.kind == "property"]


def lengths_of_theorem(finding: Finding) -> str:
    """The lengths for which a law is proved; empty if it is proved at the recorded one at most."""
    if finding.verdict != "proved" or finding.theorem is None or not finding.theorem.proved:
        return ""
    return lengths_text(finding.theorem)


def short_evidence(finding: Finding) -> str:
    """How an outcome is known, without numbers of steps: the whole text is `phrases.evidence_text`."""
    if finding.kind == "check" and finding.expected == "fails" and finding.outcome == "pass":
        return "does not hold, as expected"
    if finding.vacuous:
        return "proved, vacuous: no token sees another"
    if finding.verdict == "proved":
        if lengths := lengths_of_theorem(finding):
            return f"proved for {lengths}"
        text = f"proved at {phrases.pluralize(finding.scope.length, 'token')}"
        scope = finding.scope
        compared = [f"at up to {max(scope.compared_lengths):,}"] if scope.compared_lengths else []
        compared += [f"with {rows_text(scope.compared_rows)}"] if scope.compared_rows else []
        text = f"{text}, compared {' and '.join(compared)}" if compared else text
        return f"{text}; {reason}" if (reason := no_theorem_text(finding.theorem)) else text
    if finding.verdict == "held" and finding.measurement is not None:
        completed = sum(c.float32 is not None for c in finding.measurement.comparisons)
        return f"measured in {phrases.pluralize(completed, 'comparison')}"
    if finding.verdict == "refuted" and finding.witness is not None:
        return f"witness: {finding.witness.change}"
    return phrases.evidence_text(finding)
