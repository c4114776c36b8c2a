"""Claims about order and what came of them, as plain data (schema version 1).

Nothing here computes and nothing here imports torch or sympy, except that a verdict follows from its grounds.

    a ground is as the statement says   its finding is the one the statement asserts
    every asserted ground is so         the claim is proved; or shown, where one of them was only looked at
    one is found the other way          the claim is refuted
    one is undecided                    the claim is undecided
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import ConfigDict, Field

from orderproof.record import Deviation, Record, Witness

ClaimVerdict = Literal["proved", "refuted", "shown", "undecided"]
Answer = Literal["holds", "fails"]
Method = Literal["law", "algebra", "graph", "numbers"]
SCHEMA = 1


class GroundRecord(Record):
    """One thing a claim rests on: what was asked of which subject, and what was found."""

    what: str  # what is asked, in one sentence that holds or fails
    subject: str  # of what it is asked: "One causal layer without positions."
    method: Method = "law"
    law: str = ""  # "OP102 prompt_blind", where a law was proved or refuted
    found: ClaimVerdict
    expected: Answer  # what the exact statement says of it
    asserted: Answer | None = None  # what the statement, as people say it, says of it; None where it is silent
    evidence: tuple[str, ...] = ()
    lemmas: dict[str, int] = Field(default_factory=dict)  # lemma -> how often the proof used it
    witness: Witness | None = None
    deviation: Deviation = Deviation()

    @property
    def answer(self) -> Answer | None:
        """Whether it holds; None where that is undecided."""
        return {"proved": "holds", "shown": "holds", "refuted": "fails"}.get(self.found)  # type: ignore[return-value]

    @property
    def as_expected(self) -> bool:
        """Whether it was found as the exact statement says."""
        return self.answer == self.expected


class ClaimRecord(Record):
    """A statement as people say it, its verdict, and exactly what is true."""

    number: int
    name: str
    statement: str  # as people say it
    verdict: ClaimVerdict
    documented: ClaimVerdict
    met: bool  # the verdict is the documented one, and every ground is as the exact statement says
    exact: str  # what is true, exactly
    conditions: tuple[str, ...] = ()
    source: str = ""
    grounds: tuple[GroundRecord, ...] = ()
    seconds: float = 0.0


class ClaimsRecord(Record):
    """What one run of `orderproof claims` found."""

    schema_version: int = Field(default=SCHEMA, alias="schema", serialization_alias="schema")
    kind: Literal["claims"] = "claims"
    orderproof: str
    claims: tuple[ClaimRecord, ...]
    versions: dict[str, str] = Field(default_factory=dict)
    seconds: float = 0.0

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def to_json(self, *, indent: int | None = 2) -> str:
        """The record as JSON, schema version 1."""
        return self.model_dump_json(by_alias=True, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> ClaimsRecord:
        """Read a record back from its JSON."""
        return cls.model_validate_json(text)

    @property
    def exit_code(self) -> int:
        """0 where every claim is as it documents, else 1."""
        return int(not all(claim.met for claim in self.claims))


def verdict_of(grounds: Iterable[GroundRecord]) -> ClaimVerdict:
    """What follows for a statement from the grounds of which it says something."""
    asserted = [g for g in grounds if g.asserted is not None]
    if any(g.answer is not None and g.answer != g.asserted for g in asserted):
        return "refuted"
    if not asserted or any(g.answer is None for g in asserted):
        return "undecided"
    return "shown" if any(g.found == "shown" for g in asserted) else "proved"
