"""The records of claims about order, as plain data (schema version 2).

Nothing here imports torch or sympy. The verdict of a claim follows from its checks:

    every check that supports the claim passed   proved, or shown if one of them is a numerical example
    one check has the opposite answer            refuted
    one check is undecided                       undecided
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from orderproof.records.audit import Deviation, Witness
from orderproof.records.document import Document, Record, schema_version

ClaimVerdict = Literal["proved", "refuted", "shown", "undecided"]
TruthValue = Literal["holds", "fails"]
Method = Literal["law", "algebra", "graph", "numbers"]
SCHEMA_VERSION = 2


class ClaimCheckRecord(Record):
    """One check of a claim: a statement about a subject, and its verdict."""

    statement: str  # one sentence that holds or fails
    subject: str  # "One causal layer without positions."
    method: Method = "law"
    law: str = ""  # "OP102 prompt_permutation", if it is a law
    verdict: ClaimVerdict
    expected_answer: TruthValue  # by the exact statement
    claimed_answer: TruthValue | None = None  # by the statement as it is usually made; None if it implies no answer
    evidence: tuple[str, ...] = ()
    lemmas: dict[str, int] = Field(default_factory=dict)  # lemma -> number of uses in the proof
    witness: Witness | None = None
    deviation: Deviation = Deviation()

    @property
    def answer(self) -> TruthValue | None:
        """The answer of the check; None if it is undecided."""
        return {"proved": "holds", "shown": "holds", "refuted": "fails"}.get(self.verdict)  # type: ignore[return-value]

    @property
    def matches_expectation(self) -> bool:
        """True if the answer is that of the exact statement."""
        return self.answer == self.expected_answer


class ClaimRecord(Record):
    """A statement as it is usually made, its verdict, and the exact statement."""

    number: int
    name: str
    statement: str  # as it is usually made
    verdict: ClaimVerdict
    documented_verdict: ClaimVerdict
    matches_documentation: bool  # the verdict is the documented one, and every check agrees
    exact_statement: str
    conditions: tuple[str, ...] = ()
    source: str = ""
    theorems: tuple[str, ...] = ()  # machine-checked, in proofs/: "argument.attention.attention_equivariant"
    checks: tuple[ClaimCheckRecord, ...] = ()
    seconds: float = 0.0


class ClaimsReport(Document):
    """The result of one run of `orderproof claims`."""

    schema_version: int = schema_version(SCHEMA_VERSION)
    kind: Literal["claims"] = "claims"
    orderproof: str
    claims: tuple[ClaimRecord, ...]

    @property
    def exit_code(self) -> int:
        """0 if every claim matches its documentation, else 1."""
        return int(not all(claim.matches_documentation for claim in self.claims))


def claim_verdict(checks: Iterable[ClaimCheckRecord]) -> ClaimVerdict:
    """The verdict that follows from the checks for which the statement implies an answer."""
    asserted = [check for check in checks if check.claimed_answer is not None]
    if any(check.answer not in (None, check.claimed_answer) for check in asserted):
        return "refuted"
    if not asserted or any(check.answer is None for check in asserted):
        return "undecided"
    return "shown" if any(check.verdict == "shown" for check in asserted) else "proved"
