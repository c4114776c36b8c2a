"""The records of word-order sensitivity: how far sentence vectors move when words are reordered, as plain data.

Nothing here computes and nothing here imports torch.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from orderproof.records.audit import SubjectRecord
from orderproof.records.document import Document, Record, schema_version

Pooling = Literal["mean", "first", "last"]
SAME_SENTENCE, OTHER_SENTENCE = "same sentence", "another sentence"  # the two reference perturbations
SCHEMA_VERSION = 1


class MedianInterval(Record):
    """A median over sentences and a 95% bootstrap interval of it."""

    median: float
    low: float
    high: float


class PerturbationEffect(Record):
    """How far sentence vectors move under one perturbation."""

    perturbation: str
    sentences: int  # the number of sentences that it changes
    cosine: MedianInterval  # cosine distance, 0 to 2
    relative: MedianInterval  # norm of the difference over the norm of the first vector
    share_of_unrelated: MedianInterval | None = None  # of the cosine distance to another sentence; None if that is 0
    relative_share_of_unrelated: MedianInterval | None = None  # the same of the relative distance
    still_nearest_fraction: float | None = None  # of sentences, whose changed form is nearer than all other sentences


class LayerEffects(Record):
    """The same after one layer."""

    layer: int  # 0: the input of the first layer
    effects: tuple[PerturbationEffect, ...]


class WithoutPositions(Record):
    """The same for the recorded graph with the constants of its entry map made uniform."""

    effects: tuple[PerturbationEffect, ...] = ()
    sentences: int = 0  # of one length, that of the graph
    tokens: int = 0
    reference_position: int = 0  # the position whose constants every token gets
    reason: str = ""  # why there are no effects


class PerturbationExample(Record):
    """A sentence before and after one perturbation."""

    kind: str
    before: str
    after: str


class WordOrderSensitivity(Document):
    """The effects of reordering the words of sentences on one model."""

    schema_version: int = schema_version(SCHEMA_VERSION)
    orderproof: str
    subject: SubjectRecord
    source: str  # of the sentences
    sentences: int
    excluded: dict[str, int] = Field(default_factory=dict)  # reason -> number of sentences that were not used
    pooling: Pooling
    pooling_source: str  # of the choice of pooling
    seed: int
    effects: tuple[PerturbationEffect, ...]  # on the sentence vector
    layers: tuple[LayerEffects, ...]
    without_positions: WithoutPositions
    examples: tuple[PerturbationExample, ...]
