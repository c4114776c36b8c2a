"""The result of one run: plain data, as the store keeps it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _StoredModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TrainingPoint(_StoredModel):
    """A point of the learning curve."""

    step: int
    loss: float
    """Of that step's batch [nats]."""
    score: float
    """At the longest trained length, on a few rows."""


class LengthScore(_StoredModel):
    """The score at one length."""

    length: int
    trained: bool
    """True if the length is within the trained range."""
    score: float
    right: int | None
    """Right answers among those scored; None for nats."""
    scored: int
    ceiling: float | None
    """Of a bag-of-tokens predictor, as the nearest float."""


class RunResult(_StoredModel):
    """The result of a run; except for the times, it is a function of the configuration."""

    id: str
    config: dict[str, Any]
    edition: str = ""
    """`Question.dataset_version`: the text the question reads from the machine, if any."""
    curve: list[TrainingPoint]
    lengths: list[LengthScore]
    parameters: int
    digest: str
    """SHA-256 of the trained weights."""
    seconds: float
    """Training time."""
    tokens_per_second: float
