"""The ceilings of a question at several lengths, as a record to print or to store."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from orderproof.errors import UsageError
from orderproof.lab.question import Measure, Question

SCHEMA_VERSION = 2
MODEL_KINDS = {None: "encoders, decoders", False: "encoders", True: "decoders"}
"""The models that can be asked a question, by its `requires_causal`."""
OBSERVER_DESCRIPTIONS = {
    None: "the token at the position and the bag of the row, like an encoder without positions",
    False: "the token at the position and the bag of the row, like an encoder without positions",
    True: "the token at the position and the bag of those before, like one decoder layer without positions",
}
"""The information of the bag-of-tokens predictor, by `requires_causal`."""


class LengthCeiling(BaseModel):
    """The ceiling at one length."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length: int
    tokens: int
    """Tokens in a row of this length."""
    ceiling: float | None
    """The best score of a bag-of-tokens predictor; None if it is unknown."""
    fraction: str | None
    """The same as an exact fraction; None if it is not known as one."""
    derivation: str | None
    """The formula behind the ceiling, in one line; None without a ceiling."""
    floor: float | None
    """The lowest cross-entropy [nats] of any predictor, if it is known."""


class CeilingReport(BaseModel):
    """A question and its ceilings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = Field(default=SCHEMA_VERSION, alias="schema", serialization_alias="schema")
    question: str
    settings: dict[str, Any]
    measure: Measure
    model_kinds: str
    observer: str
    """The information of the predictor whose best score is the ceiling."""
    statement: str
    source: str
    lengths: tuple[LengthCeiling, ...]

    def to_json(self) -> str:
        """The record as JSON, schema version 2."""
        return self.model_dump_json(by_alias=True, indent=2)


def compute_ceilings(question: Question, lengths: Sequence[int] | None = None) -> CeilingReport:
    """The ceilings at these lengths, by default the question's test lengths. Raises `UsageError`."""
    lengths = lengths or question.test_lengths
    if short := [length for length in lengths if length < 1]:
        raise UsageError(f"expected lengths of 1 or more; got {short[0]}")
    return CeilingReport(
        question=question.name,
        settings=question.model_dump(),
        measure=question.measure,
        model_kinds=MODEL_KINDS[question.requires_causal],
        observer=OBSERVER_DESCRIPTIONS[question.requires_causal],
        statement=question.statement,
        source=question.source,
        lengths=tuple(_at_length(question, length) for length in lengths),
    )


def _at_length(question: Question, length: int) -> LengthCeiling:
    ceiling = question.ceiling(length)
    value = None if ceiling is None else ceiling.value
    return LengthCeiling(
        length=length,
        tokens=question.row_length(length),
        ceiling=None if value is None else float(value),
        fraction=_format_fraction(value) if isinstance(value, Fraction) else None,
        derivation=None if ceiling is None else ceiling.derivation,
        floor=question.floor(length),
    )


def _format_fraction(value: Fraction) -> str:
    """All digits, through Decimal: Python refuses to convert integers of more than 4300 digits to text."""
    numerator = str(Decimal(value.numerator))
    return numerator if value.denominator == 1 else f"{numerator}/{Decimal(value.denominator)}"
