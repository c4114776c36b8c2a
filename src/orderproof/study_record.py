"""What a study of encodings found, as plain data: each cell's scores over its seeds, with intervals and ceilings.

A *cell* is one configuration of the study's grid, trained once for each seed; a *score* is what the question measures.
Every `low` and `high` are the ends of a 95% interval over seeds; with one seed they are the score itself.
Nothing here computes and nothing here imports torch. The JSON of a `Study` is the one source every renderer reads.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, FiniteFloat, JsonValue, model_validator

from orderproof.record import Record

Measure = Literal["accuracy", "exact_match", "nats"]
SCHEMA = 1


class Estimate(Record):
    """An interquartile mean over seeds and an interval of it."""

    iqm: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat

    @model_validator(mode="after")
    def _ordered(self) -> Estimate:
        if not self.low <= self.high:
            raise ValueError(f"expected low <= high; got {self.low} and {self.high}")
        return self


class CurvePoint(Estimate):
    """The score at a step of training, on a few rows of the longest trained length."""

    step: int


class LengthPoint(Estimate):
    """The score at one length after training."""

    length: int
    trained: bool
    ceiling: FiniteFloat | None = None  # the best a reader blind to order can score; None where nobody knows
    right: int | None = None  # of the places or rows scored, over all seeds; None where rightness is not counted
    scored: int
    above: int | None = None  # seeds whose own accuracy is above the ceiling (Clopper and Pearson, 95%)


class Over(Estimate):
    """The mean score over several lengths."""

    ceiling: FiniteFloat | None = None  # the mean of the ceilings, where all are known


class Cell(Record):
    """One configuration, over its seeds."""

    label: str  # only what the grid varies
    encoding: str
    causal: bool
    layers: int
    varied: dict[str, JsonValue] = Field(default_factory=dict)  # what else the grid varies, its key with dots
    seeds: int = Field(ge=1)
    curve: tuple[CurvePoint, ...]
    lengths: tuple[LengthPoint, ...]
    trained: Over | None  # over the lengths trained; None where none of them was tested
    beyond: Over | None  # over those longer than any that was trained
    proved: tuple[str, ...] = ()  # the laws that this cell's model was proved to obey
    seconds: float  # of all its runs together
    tokens_per_second: float  # their median


class Improvement(Record):
    """How probably a run of one cell scores better than a run of another: 1/2 where they are alike."""

    first: str
    second: str
    lengths: tuple[int, ...]  # over which it is taken
    probability: float = Field(ge=0, le=1)
    low: float = Field(ge=0, le=1)
    high: float = Field(ge=0, le=1)


class PublishedRow(Record):
    """What others report for this question or its model, as text: never a number of ours."""

    label: str
    text: str
    source: str


class Study(Record):
    """Encodings, trained and measured on one question."""

    schema_version: int = Field(default=SCHEMA, alias="schema", serialization_alias="schema")
    kind: Literal["study"] = "study"
    orderproof: str
    study: str
    question: str
    statement: str
    measure: Measure
    command: str = ""  # how to repeat it
    cells: tuple[Cell, ...]
    improvements: tuple[Improvement, ...] = ()
    trained_lengths: tuple[int, int]
    published: tuple[PublishedRow, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    machine: dict[str, str] = Field(default_factory=dict)
    seconds: float

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def to_json(self) -> str:
        """The record as JSON."""
        return self.model_dump_json(by_alias=True, indent=2)
