"""The ceilings of a question at some lengths, as a record to print or to keep."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from orderproof.errors import UsageError
from orderproof.lab.question import Measure, Question

SCHEMA = 1
ASKED_OF = {None: "encoders, decoders", False: "encoders", True: "decoders"}
"""Of whom a question is asked, by its `causal`."""
READERS = {
    None: "the token at the place and the bag of the row, as an encoder without positions does",
    False: "the token at the place and the bag of the row, as an encoder without positions does",
    True: "the token at the place and the bag of those before, as one layer of a decoder without positions does",
}
"""What the reader that counts knows."""


class CeilingAt(BaseModel):
    """The ceiling at one length."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length: int
    tokens: int
    """How many tokens a row has."""
    ceiling: float | None
    """The best score of a reader blind to order; None where nobody knows it."""
    fraction: str | None
    """The same exactly; None where it is not known as a fraction."""
    how: str | None
    floor: float | None
    """The least nats that any reader can pay, where that is known."""


class Ceilings(BaseModel):
    """A question, and its ceilings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = Field(default=SCHEMA, alias="schema", serialization_alias="schema")
    question: str
    settings: dict[str, Any]
    measure: Measure
    asked_of: str
    reader: str
    """What the reader knows whose best score is the ceiling."""
    statement: str
    source: str
    lengths: tuple[CeilingAt, ...]

    def to_json(self) -> str:
        """The record as JSON, schema version 1."""
        return self.model_dump_json(by_alias=True, indent=2)


def ceilings(question: Question, lengths: Sequence[int] | None = None) -> Ceilings:
    """The ceilings at these lengths; by default at those the question is tested at. Raises `UsageError`."""
    lengths = lengths or question.test_lengths
    if short := [length for length in lengths if length < 1]:
        raise UsageError(f"expected lengths from 1 on; got {short[0]}")
    return Ceilings(
        question=question.name,
        settings=question.model_dump(),
        measure=question.measure,
        asked_of=ASKED_OF[question.causal],
        reader=READERS[question.causal],
        statement=question.statement,
        source=question.source,
        lengths=tuple(_at(question, length) for length in lengths),
    )


def _at(question: Question, length: int) -> CeilingAt:
    found = question.ceiling(length)
    value = None if found is None else found.value
    return CeilingAt(
        length=length,
        tokens=question.tokens(length),
        ceiling=None if value is None else float(value),
        fraction=_written(value) if isinstance(value, Fraction) else None,
        how=None if found is None else found.how,
        floor=question.floor(length),
    )


def _written(value: Fraction) -> str:
    """All digits: of a decimal there may be more than Python writes of an integer."""
    above = str(Decimal(value.numerator))
    return above if value.denominator == 1 else f"{above}/{Decimal(value.denominator)}"
