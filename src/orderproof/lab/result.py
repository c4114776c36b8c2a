"""What one run found: plain data, as it is stored."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Point(_Record):
    """A point of the learning curve."""

    step: int
    loss: float
    """Of the batch of that step [nats]."""
    score: float
    """At the longest trained length, on a few rows."""


class LengthScore(_Record):
    """The score at one length."""

    length: int
    trained: bool
    """Whether the length lies within the trained ones."""
    score: float
    right: int | None
    scored: int
    ceiling: float | None
    """Of a reader blind to order, as the number nearest to it."""


class RunResult(_Record):
    """Everything a run gives; but for the times, a function of its configuration."""

    id: str
    config: dict[str, Any]
    edition: str = ""
    """Which text the question was about, where it has one of the machine it is asked on."""
    curve: list[Point]
    lengths: list[LengthScore]
    parameters: int
    digest: str
    """SHA-256 of the trained weights."""
    seconds: float
    """Spent training."""
    tokens_per_second: float
