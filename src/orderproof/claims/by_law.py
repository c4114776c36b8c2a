"""A ground that is a law: proved on the recorded graph, or refuted by two runs.

A proof that holds because no token sees another says nothing of tokens that do. It settles a ground only where that
is what is asked (``alone``); elsewhere the ground is undecided.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderproof.claim_record import ClaimVerdict
from orderproof.claims.bench import Bench
from orderproof.claims.claim import Make, Outcome
from orderproof.record import Finding
from orderproof.report import words


@dataclass(frozen=True)
class ByLaw:
    """Ask a law of an output, the first by default."""

    law: str
    output: str | None = None
    alone: bool = False  # whether the proof should be one in which every token stands alone

    def __call__(self, make: Make, bench: Bench) -> Outcome:
        """Prove it or refute it."""
        finding = bench.finding(make, self.law, self.output)
        return Outcome(
            found=self._found(finding), method="law", law=words.name(finding), evidence=evidence(finding),
            lemmas=finding.proof.lemmas if finding.proof else None, witness=finding.witness,
            deviation=finding.deviation,
        )  # fmt: skip

    def _found(self, finding: Finding) -> ClaimVerdict:
        if finding.verdict == "refuted":
            return "refuted"
        return "proved" if finding.verdict == "proved" and finding.vacuous <= self.alone else "undecided"


def evidence(finding: Finding) -> tuple[str, ...]:
    """A finding in a few lines."""
    lines = []
    if finding.proof is not None:
        scope = words.verdict_of("proved", finding.scope).partition(" ")[2]
        lines.append(f"{scope}, {words.at_length(finding.scope)}")
        used = ", ".join(lemma for lemma, _ in words.lemmas(finding.proof))
        lines.append(f"{words.count(finding.proof.steps, 'step')} of the recorded graph, by {used}")
    if finding.vacuous:
        lines.append("no token sees another: each row is worked out alone")
    if finding.witness is not None:
        w = finding.witness
        lines.append(f"{w.change}: {' '.join(w.before)} becomes {' '.join(w.after)}")
        lines.append(words.outcome(w, finding.output))
    if finding.entries_complete and finding.entries:
        where = "; ".join(f"{e.operator} ({e.source})" for e in finding.entries)
        lines.append(f"order enters at {where} and nowhere else")
    if finding.verdict == "undecided" and finding.reason:
        lines.append(finding.reason)
    if finding.deviation.float32 is not None:
        d = finding.deviation
        lines.append(f"in numbers: float32 {words.size(d.float32)}, float64 {words.size(d.float64)}{_fall(finding)}")
    return tuple(lines)


def _fall(finding: Finding) -> str:
    fall = words.fall(finding.deviation)
    return f" ({fall})" if fall else ""
