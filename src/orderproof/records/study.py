"""The records of a study of encodings: the scores of each cell over its seeds, with intervals and ceilings.

A *cell* is one configuration of the study's grid, trained once per seed; a *score* is the measure of the question.
`low` and `high` are the ends of a 95% interval over seeds; with one seed they equal the score. A cell that does not
solve the trained lengths is not compared with others. This module computes
nothing and does not import torch. Every renderer reads a `Study` only.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, FiniteFloat, JsonValue, model_validator

from orderproof.records.document import Document, Record, schema_version

Measure = Literal["accuracy", "exact_match", "nats"]
SCHEMA_VERSION = 3


class Estimate(Record):
    """An interquartile mean over seeds, with its interval."""

    iqm: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat

    @model_validator(mode="after")
    def _ordered(self) -> Estimate:
        if not self.low <= self.high:
            raise ValueError(f"expected low <= high; got {self.low} and {self.high}")
        return self


class CurvePoint(Estimate):
    """The score at a training step, on a few rows of the longest trained length."""

    step: int


class LengthPoint(Estimate):
    """The score at one length after training."""

    length: int
    in_training_range: bool
    ceiling: FiniteFloat | None = None  # the best score without token order; None if unknown
    correct_count: int | None = None  # of the scored tokens or rows, over all seeds; None if the score is no count
    scored_count: int
    seeds_above_ceiling: int | None = None  # seeds whose accuracy is above it (Clopper-Pearson, 95%)


class MeanScore(Estimate):
    """The mean score over several lengths."""

    ceiling: FiniteFloat | None = None  # the mean of the ceilings, if all are known


class SweepPoint(Record):
    """The mean outcome of one learning rate in the sweep before a study, on validation rows."""

    learning_rate: float
    seeds: int = Field(ge=1)
    solved: int = Field(ge=0)  # seeds that reached the score at which training stops
    steps: FiniteFloat
    score: FiniteFloat  # at the longest trained length


class Cell(Record):
    """One configuration, over its seeds."""

    label: str  # the settings that vary in the grid
    encoding: str
    causal: bool
    layers: int
    grid_values: dict[str, JsonValue] = Field(default_factory=dict)  # the other values of the grid, by dotted key
    seeds: int = Field(ge=1)
    curve: tuple[CurvePoint, ...]
    lengths: tuple[LengthPoint, ...]
    trained_lengths_score: MeanScore | None  # over the trained lengths; None if none of them was tested
    longer_lengths_score: MeanScore | None  # over the longer lengths
    proved_laws: tuple[str, ...] = ()  # names of the laws proved of this cell's model
    proved_invariances: tuple[str, ...] = ()  # those of them that state an invariance under reordering the tokens
    solves_trained_lengths: bool | None = None  # a mean score of 0.95 or more; None where the score has no maximum
    learning_rate: float | None = None
    sweep: tuple[SweepPoint, ...] = ()  # the learning rates that were tried, best first
    parameters: int | None = None
    seconds: float  # of all its runs together
    tokens_per_second: float  # their median


class Difference(Record):
    """The mean difference of two cells within a seed, positive where the first is better.

    The intervals of all differences of a study hold together.
    """

    first: str
    second: str
    lengths: tuple[int, ...]  # of the scores, which are averaged over them
    difference: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    better: int = Field(ge=0)  # seeds in which the first is better
    worse: int = Field(ge=0)
    ties: int = Field(ge=0)


class PublishedResult(Record):
    """A published result for this question or its model, as text."""

    label: str
    text: str
    source: str


class Study(Document):
    """Encodings, trained and measured on one question."""

    schema_version: int = schema_version(SCHEMA_VERSION)
    kind: Literal["study"] = "study"
    orderproof: str
    name: str
    question: str
    statement: str
    measure: Measure
    command: str = ""  # that repeats the study
    cells: tuple[Cell, ...]
    differences: tuple[Difference, ...] = ()  # between the cells that solve the trained lengths
    trained_lengths: tuple[int, int]
    published: tuple[PublishedResult, ...] = ()
    machine: dict[str, str] = Field(default_factory=dict)
