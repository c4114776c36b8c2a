"""Claims: a statement in its common form, and the checks that decide it.

A check states one property of one subject; its verdict is proved, refuted, shown or undecided. The verdict on a claim
follows from its checks (`records.claims`); only the expected verdict is written down. Each check has a negative
control, a subject with the opposite result; with it in place, the claim no longer matches its documentation.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.errors import OrderproofError
from orderproof.records.audit import Deviation, Witness
from orderproof.records.claims import (
    ClaimCheckRecord,
    ClaimRecord,
    ClaimsReport,
    ClaimVerdict,
    Method,
    TruthValue,
    claim_verdict,
)


@dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """The verdict of a check, with its evidence."""

    verdict: ClaimVerdict
    method: Method
    evidence: tuple[str, ...] = ()
    law: str = ""
    lemmas: dict[str, int] | None = None
    witness: Witness | None = None
    deviation: Deviation = field(default_factory=Deviation)


class CheckMethod(Protocol):
    """A method of checking: by a law, symbolically, on the graph, or numerically."""

    def __call__(self, make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
        """Check the subject."""
        ...


@dataclass(frozen=True, kw_only=True)
class ClaimCheck:
    """One check of a claim. The first line of the factory's docstring describes the subject."""

    statement: str
    make_subject: SubjectFactory
    method: CheckMethod
    expected: TruthValue
    asserted_by_claim: TruthValue | None = None
    negative_control: SubjectFactory  # a subject with another result

    def run(self, audits: AuditCache) -> ClaimCheckRecord:
        """Run the check."""
        try:
            outcome = self.method(self.make_subject, audits)
        except OrderproofError as error:  # a model that is not installed makes only its own checks undecided
            outcome = CheckOutcome(verdict="undecided", method="numbers", evidence=(str(error),))
        return ClaimCheckRecord(
            statement=self.statement, subject=(inspect.getdoc(self.make_subject) or
            "").partition("\n\n")[0].replace("\n", " "), method=outcome.method, law=outcome.law,
            verdict=outcome.verdict, expected_answer=self.expected, claimed_answer=self.asserted_by_claim,
            evidence=outcome.evidence, lemmas=outcome.lemmas or {}, witness=outcome.witness,
            deviation=outcome.deviation,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim about token order, with the checks that decide it."""

    number: int
    name: str
    statement: str
    expected_verdict: ClaimVerdict
    exact_statement: str
    conditions: tuple[str, ...]
    source: str
    theorems: tuple[str, ...] = ()  # of proofs/: folder.file.name
    checks: tuple[ClaimCheck, ...]

    def run(self, audits: AuditCache) -> ClaimRecord:
        """Run every check."""
        start = time.perf_counter()
        checks = tuple(check.run(audits) for check in self.checks)
        verdict = claim_verdict(checks)
        return ClaimRecord(
            number=self.number, name=self.name, statement=self.statement, verdict=verdict,
            documented_verdict=self.expected_verdict, matches_documentation=verdict == self.expected_verdict and
            all(check.matches_expectation for check in checks), exact_statement=self.exact_statement,
            conditions=self.conditions, source=self.source, theorems=self.theorems, checks=checks,
            seconds=round(time.perf_counter() - start,
            3),
        )  # fmt: skip

    def with_negative_control(self, k: int) -> Claim:
        """The same claim with the negative control as the subject of check ``k``."""
        control = replace(self.checks[k], make_subject=self.checks[k].negative_control)
        return replace(self, checks=(*self.checks[:k], control, *self.checks[k + 1 :]))


def run_claims(claims: Iterable[Claim], *, progress: Callable[[str, int, int], None] | None = None) -> ClaimsReport:
    """Run the checks of each claim; ``progress`` receives a text, the finished claims and their total."""
    from orderproof._version import __version__
    from orderproof.records.document import versions

    start = time.perf_counter()
    audits, records, selected = AuditCache(), [], list(claims)
    for k, claim in enumerate(selected):
        if progress is not None:
            progress(f"{claim.number} {claim.name}", k, len(selected))
        records.append(claim.run(audits))
    return ClaimsReport(
        orderproof=__version__, claims=tuple(records), versions=versions(),
        seconds=round(time.perf_counter() - start, 3),
    )  # fmt: skip
