"""What a claim is: a statement as people say it, and the grounds on which it stands or falls.

A ground asks one thing of one subject and comes out as proved, refuted, shown or undecided. Nothing about a verdict is
written down beforehand but what it is documented to be: it follows from what is found (`claim_record`). Each ground
carries a broken subject, of which the opposite is found; with it in place the claim is not as documented any more.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from orderproof.claim_record import Answer, ClaimRecord, ClaimsRecord, ClaimVerdict, GroundRecord, Method, verdict_of
from orderproof.claims.bench import Bench
from orderproof.errors import OrderproofError
from orderproof.record import Deviation, Witness

Make = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was found, and what shows it."""

    found: ClaimVerdict
    method: Method
    evidence: tuple[str, ...] = ()
    law: str = ""
    lemmas: dict[str, int] | None = None
    witness: Witness | None = None
    deviation: Deviation = field(default_factory=Deviation)


class Test(Protocol):
    """A way of finding out: by a law, by algebra, on the graph, or in numbers."""

    def __call__(self, make: Make, bench: Bench) -> Outcome:
        """Ask it of the subject that is made."""
        ...


@dataclass(frozen=True, kw_only=True)
class Ground:
    """One thing a claim rests on. The first line of a subject's docstring says what it is."""

    what: str
    subject: Make
    test: Test
    expected: Answer
    asserted: Answer | None = None
    broken: Make  # a subject of which something else is found

    def examined(self, bench: Bench) -> GroundRecord:
        """Find out."""
        try:
            outcome = self.test(self.subject, bench)
        except OrderproofError as error:  # a model that is not installed costs its own ground and no other
            outcome = Outcome(found="undecided", method="numbers", evidence=(str(error),))
        return GroundRecord(
            what=self.what,
            subject=(inspect.getdoc(self.subject) or "").partition("\n\n")[0].replace("\n", " "),
            method=outcome.method, law=outcome.law, found=outcome.found, expected=self.expected,
            asserted=self.asserted, evidence=outcome.evidence, lemmas=outcome.lemmas or {}, witness=outcome.witness,
            deviation=outcome.deviation,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement about token order and what it rests on."""

    number: int
    name: str
    statement: str
    documented: ClaimVerdict
    exact: str
    conditions: tuple[str, ...]
    source: str
    grounds: tuple[Ground, ...]

    def examined(self, bench: Bench) -> ClaimRecord:
        """Find out about every ground."""
        began = time.perf_counter()
        grounds = tuple(ground.examined(bench) for ground in self.grounds)
        verdict = verdict_of(grounds)
        return ClaimRecord(
            number=self.number, name=self.name, statement=self.statement, verdict=verdict, documented=self.documented,
            met=verdict == self.documented and all(g.as_expected for g in grounds),
            exact=self.exact, conditions=self.conditions, source=self.source, grounds=grounds,
            seconds=round(time.perf_counter() - began, 3),
        )  # fmt: skip

    def with_a_fault(self, k: int) -> Claim:
        """The same claim with the broken subject in ground ``k``."""
        faulty = replace(self.grounds[k], subject=self.grounds[k].broken)
        return replace(self, grounds=(*self.grounds[:k], faulty, *self.grounds[k + 1 :]))


def run_claims(chosen: Iterable[Claim], *, progress: Callable[[str, int, int], None] | None = None) -> ClaimsRecord:
    """Examine claims, one after the other."""
    from orderproof import __version__
    from orderproof.auditing.steps import versions

    began = time.perf_counter()
    bench, found, every = Bench(), [], list(chosen)
    for k, claim in enumerate(every):
        if progress is not None:
            progress(f"{claim.number} {claim.name}", k, len(every))
        found.append(claim.examined(bench))
    return ClaimsRecord(
        orderproof=__version__, claims=tuple(found), versions=versions(),
        seconds=round(time.perf_counter() - began, 3),
    )  # fmt: skip
