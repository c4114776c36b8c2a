"""What one run is: every number it depends on, and a name made of them.

A run is a function of its configuration alone. The configuration's name is the SHA-256 of its canonical JSON (keys in
order, no spaces), so that the same run has the same name on every machine.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_validator,
)

from orderproof.encodings import get as encoding_named
from orderproof.errors import OrderproofError, UsageError
from orderproof.lab import asking
from orderproof.lab.question import Question
from orderproof.lab.stretching import STRETCHES

NAME = "name"


def _question(given: object) -> object:
    """A question from its name, or from its name and settings."""
    if isinstance(given, Question):
        return given
    settings = {NAME: given} if isinstance(given, str) else given
    if not isinstance(settings, dict) or not isinstance(settings.get(NAME), str):
        raise ValueError(f"expected the name of a question, or a mapping with its name and settings, got {given!r}")
    try:
        kind = asking.get(settings[NAME])
    except UsageError as error:
        raise ValueError(str(error)) from error
    return kind.model_validate({key: value for key, value in settings.items() if key != NAME})


class RunConfig(BaseModel):
    """One training: a question, a model, a way to train it, what to test it on, and a seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Annotated[SerializeAsAny[Question], BeforeValidator(_question)]
    encoding: str = "rotary"
    stretch: str | None = None
    """A schedule put into a trained RoPE where a row is longer than those trained (see `stretching`)."""
    causal: bool = True
    layers: int = Field(default=2, ge=1)
    width: int = Field(default=64, ge=1)
    heads: int = Field(default=4, ge=1)
    hidden: int | None = Field(default=None, ge=1)
    """Features inside the feed-forward; None: four times the width."""
    steps: int = Field(default=1000, ge=1)
    batch: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=3e-3, gt=0, allow_inf_nan=False)
    schedule: Literal["constant", "cosine"] = "cosine"
    warmup: int = Field(default=20, ge=0)
    """Steps over which the learning rate rises from 0."""
    weight_decay: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    clip: float | None = Field(default=1.0, gt=0, allow_inf_nan=False)
    """The largest norm of the gradient; None: any."""
    train_lengths: tuple[int, int] | None = None
    """The shortest and the longest; a batch has one length, each as often. None: the question's own."""
    test_lengths: tuple[int, ...] | None = None
    test_rows: int = Field(default=512, ge=1)
    """Rows to test on at each length; a question that has whole orbits takes those."""
    measure_every: int = Field(default=50, ge=1)
    """Steps between two points of the learning curve."""
    keep_every: int = Field(default=200, ge=1)
    """Steps between two checkpoints."""
    seed: int = Field(default=0, ge=0)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, given: object, about: ValidationInfo) -> object:
        if isinstance(given, bool) and cls.model_fields[str(about.field_name)].annotation is not bool:
            raise ValueError(f"expected no truth value, got {given}; quote a word that YAML reads as one, such as no")
        return given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        try:
            encoding_named(self.encoding)
        except OrderproofError as error:
            raise ValueError(str(error)) from error
        if self.stretch is not None and (self.encoding != "rotary" or self.stretch not in STRETCHES):
            known = ", ".join(STRETCHES)
            raise ValueError(f"stretch: expected one of {known}, with encoding=rotary; got {self.stretch!r}")
        if self.width % self.heads:
            raise ValueError(f"heads: expected a number that divides width={self.width}, got {self.heads}")
        needed = self.question.causal
        if needed is not None and self.causal is not needed:
            kind = "a decoder" if needed else "an encoder"
            raise ValueError(f"causal: {self.question.name} is asked of {kind}; set causal={str(needed).lower()}")
        if not self.tested or min(self.tested) < 1:
            came = min(self.tested, default="none")
            raise ValueError(f"test_lengths: expected one length or more, each 1 or more, got {came}")
        low, high = self.trained
        if not 1 <= low <= high:
            raise ValueError(f"train_lengths: expected two numbers, 1 or more and in order, got {low} and {high}")
        try:
            for length in (low, high, *self.tested):
                self.question.tokens(length)
        except OrderproofError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def trained(self) -> tuple[int, int]:
        """The shortest and the longest length to train at."""
        return self.train_lengths or self.question.train_lengths

    @property
    def tested(self) -> tuple[int, ...]:
        """The lengths to test at."""
        return self.question.test_lengths if self.test_lengths is None else self.test_lengths

    def plain(self) -> dict[str, Any]:
        """The configuration as data, from which it can be made again."""
        data: dict[str, Any] = self.model_dump(mode="json")
        data["question"] = {NAME: self.question.name, **data["question"]}
        return data

    @cached_property
    def id(self) -> str:
        """The run's name."""
        return fingerprint(self.plain())

    @cached_property
    def cell(self) -> str:
        """The name of the runs that differ from this one in nothing but the seed."""
        data = self.plain()
        del data["seed"]
        return fingerprint(data)


def fingerprint(data: dict[str, Any]) -> str:
    """Sixteen hexadecimal digits that stand for the data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
