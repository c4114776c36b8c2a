"""Checks by a law: proved on the recorded graph, or refuted by two runs.

A proof that holds because no token attends to another is vacuous. It decides a check only if the subject is meant to be
pointwise; otherwise the check is undecided.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.claims.claim import CheckOutcome
from orderproof.laws.proved.proved_law import ProvedLaw
from orderproof.records.audit import Finding
from orderproof.records.claims import ClaimVerdict
from orderproof.report import phrases, witness_phrases


@dataclass(frozen=True)
class LawCheck:
    """Check a law for one output, by default the first."""

    law: ProvedLaw
    output: str | None = None
    pointwise: bool = False  # whether the subject acts on each token alone, so that a vacuous proof is meant

    def __call__(self, make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
        """Prove or refute the law."""
        finding = audits.finding(make_subject, self.law.name, self.output)
        return CheckOutcome(
            verdict=self._verdict(finding), method="law", law=phrases.law_title(finding),
            evidence=describe_finding(finding), lemmas=finding.proof.lemma_counts if finding.proof else None,
            witness=finding.witness, deviation=finding.deviation,
        )  # fmt: skip

    def _verdict(self, finding: Finding) -> ClaimVerdict:
        if finding.verdict == "refuted":
            return "refuted"
        return "proved" if finding.verdict == "proved" and finding.vacuous <= self.pointwise else "undecided"


def describe_finding(finding: Finding) -> tuple[str, ...]:
    """The evidence of a finding, in a few lines."""
    lines = []
    if finding.proof is not None:
        lines.append(phrases.verdict_text("proved", finding.scope, finding.theorem).partition(" ")[2])
        lemmas = ", ".join(lemma for lemma, _ in phrases.lemma_counts(finding.proof))
        steps = phrases.pluralize(finding.proof.step_count, "step")
        lines.append(f"{phrases.length_text(finding.scope)}, {steps} of the recorded graph, by {lemmas}")
    if finding.vacuous:
        lines.append("no token attends to another: each row is computed alone")
    if finding.witness is not None:
        witness = finding.witness
        before, after = " ".join(witness.tokens_before), " ".join(witness.tokens_after)
        lines.append(f"{witness.change}: {before} becomes {after}")
        lines.append(witness_phrases.witness_outcome(witness, finding.output))
    if finding.entries_complete and finding.entries:
        places = "; ".join(f"{entry.operator} ({entry.source})" for entry in finding.entries)
        lines.append(f"order enters only at {places}")
    if finding.verdict == "undecided" and finding.reason:
        lines.append(finding.reason)
    deviation = finding.deviation
    if deviation.float32 is not None:
        single, double = map(phrases.format_difference, (deviation.float32, deviation.float64))
        ratio = phrases.precision_ratio_text(deviation)
        lines.append(f"measured: float32 {single}, float64 {double}{f' ({ratio})' if ratio else ''}")
    return tuple(lines)
