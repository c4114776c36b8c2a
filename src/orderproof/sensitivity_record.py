"""How far a model's outputs move when the words of sentences change places, as plain data.

Nothing here computes and nothing here imports torch.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from orderproof.record import Record, SubjectRecord

Pooling = Literal["mean", "first", "last"]
SAME, OTHER = "same sentence", "another sentence"  # the two references beside the kinds of change
SCHEMA = 1


class Spread(Record):
    """A median over sentences and a 95% bootstrap interval of it."""

    median: float
    low: float
    high: float


class Moved(Record):
    """How far sentence vectors move under one kind of change."""

    kind: str
    sentences: int  # how many of them the kind changes
    cosine: Spread  # cosine distance, 0 to 2
    relative: Spread  # length of the difference over the length of the first vector
    share: Spread | None = None  # of the cosine distance to another sentence; None where that is nothing
    relative_share: Spread | None = None  # the same of the relative distance
    nearer: float | None = None  # share of sentences whose changed form is nearer than every other sentence


class Layer(Record):
    """The same after one layer."""

    layer: int  # 0: what goes into the first layer
    moved: tuple[Moved, ...]


class WithoutPositions(Record):
    """The same for the recorded graph with the constants of its entry map made uniform, where there is one."""

    moved: tuple[Moved, ...] = ()
    sentences: int = 0  # those of one length: a graph is recorded at one
    tokens: int = 0
    place: int = 0  # the place whose constants every token gets
    reason: str = ""  # why it could not be made


class Example(Record):
    """A sentence as it stands and as a kind of change leaves it."""

    kind: str
    before: str
    after: str


class Sensitivity(Record):
    """What moving the words of sentences does to one model."""

    schema_version: int = Field(default=SCHEMA, alias="schema", serialization_alias="schema")
    orderproof: str
    subject: SubjectRecord
    source: str  # where the sentences are from
    sentences: int
    left_out: dict[str, int] = Field(default_factory=dict)  # why a sentence was not used -> how many
    pooling: Pooling
    pooling_from: str  # who says so
    seed: int
    moved: tuple[Moved, ...]  # of the sentence vector, as the model's users take it
    layers: tuple[Layer, ...]
    without: WithoutPositions
    examples: tuple[Example, ...]
    versions: dict[str, str] = Field(default_factory=dict)
    seconds: float = 0.0

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def to_json(self) -> str:
        """The record as JSON."""
        return self.model_dump_json(by_alias=True, indent=2)
