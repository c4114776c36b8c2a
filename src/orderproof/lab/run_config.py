"""The configuration of a run: every setting that its result depends on, and an id computed from them.

A run is a function of its configuration alone. Its id is a prefix of the SHA-256 of the canonical JSON (sorted keys, no
spaces), so that the same run has the same id on every machine. The names of the fields are therefore fixed.
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
    JsonValue,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_validator,
)

from orderproof.encodings import ModelSizes, full_name
from orderproof.encodings import build as build_encoding
from orderproof.errors import OrderproofError, UsageError
from orderproof.lab import registry
from orderproof.lab.question import Question
from orderproof.lab.rope_extension import ROPE_EXTENSIONS
from orderproof.lab.setting_keys import NAME_KEY, QUESTION_KEY, SEED_KEY


def _parse_question(value: object) -> object:
    """A question from its name, or from a mapping with its name and settings."""
    if isinstance(value, Question):
        return value
    settings = {NAME_KEY: value} if isinstance(value, str) else value
    if not isinstance(settings, dict) or not isinstance(settings.get(NAME_KEY), str):
        raise ValueError(f"expected the name of a question, or a mapping with its name and settings, got {value!r}")
    try:
        question = registry.get_question(settings[NAME_KEY])
    except UsageError as error:
        raise ValueError(str(error)) from error
    return question.model_validate({key: setting for key, setting in settings.items() if key != NAME_KEY})


class RunConfig(BaseModel):
    """One training run: a question, a model, the optimisation, the test lengths, and a seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Annotated[SerializeAsAny[Question], BeforeValidator(_parse_question)]
    encoding: str = "rotary"
    encoding_arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments of the encoding's constructor; others keep their defaults."""
    random_positions: int | None = Field(default=None, ge=1)
    """The largest position; each row gets random positions in ascending order (see `positions.randomized`)."""
    stretch: str | None = None
    """The frequency scaling of RoPE for rows longer than in training (see `rope_extension`)."""
    causal: bool = True
    layers: int = Field(default=2, ge=1)
    width: int = Field(default=64, ge=1)
    heads: int = Field(default=4, ge=1)
    hidden: int | None = Field(default=None, ge=1)
    """Hidden features of the feed-forward network; None for four times the width."""
    steps: int = Field(default=1000, ge=1)
    solved: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Stop before ``steps`` if the score at the longest trained length reaches this at two measurements in a row."""
    batched: bool = False
    """Train the runs that differ only in seed and learning rate together (see `seed_batch`)."""
    batch: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=3e-3, gt=0, allow_inf_nan=False)
    schedule: Literal["constant", "cosine"] = "cosine"
    warmup: int = Field(default=20, ge=0)
    """Steps of linear learning-rate warmup."""
    weight_decay: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    clip: float | None = Field(default=1.0, gt=0, allow_inf_nan=False)
    """The maximum norm of the gradient; None for no clipping."""
    train_lengths: tuple[int, int] | None = None
    """The shortest and the longest; each batch has one length, drawn uniformly. None for the question's default."""
    test_lengths: tuple[int, ...] | None = None
    test_rows: int = Field(default=512, ge=1)
    """Test rows per length; a question may use all of its rows instead."""
    measure_every: int = Field(default=50, ge=1)
    """Steps between points of the learning curve."""
    keep_every: int = Field(default=200, ge=1)
    """Steps between checkpoints."""
    seed: int = Field(default=0, ge=0)

    @field_validator("*", mode="before")
    @classmethod
    def _reject_booleans(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation is not bool:
            raise ValueError(f"expected no boolean, got {value}; quote a word that YAML reads as one, such as no")
        return value

    @field_validator("encoding")
    @classmethod
    def _name_content(cls, value: str) -> str:
        """The name of an encoding in a file of the user has a digest of the file: other code is another run."""
        try:
            return full_name(value)
        except UsageError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"heads: expected a number that divides width={self.width}, got {self.heads}")
        try:
            sizes = ModelSizes(width=self.width, heads=self.heads, causal=self.causal, length=1)
            build_encoding(self.encoding, sizes, self.encoding_arguments)
        except (OrderproofError, TypeError) as error:
            raise ValueError(str(error)) from error
        if self.stretch is not None and (self.encoding != "rotary" or self.stretch not in ROPE_EXTENSIONS):
            known = ", ".join(ROPE_EXTENSIONS)
            raise ValueError(f"stretch: expected one of {known}, with encoding=rotary; got {self.stretch!r}")
        required = self.question.requires_causal
        if required is not None and self.causal is not required:
            kind = "a decoder" if required else "an encoder"
            raise ValueError(f"causal: {self.question.name} needs {kind}; set causal={str(required).lower()}")
        if not self.effective_test_lengths or min(self.effective_test_lengths) < 1:
            shortest = min(self.effective_test_lengths, default="none")
            raise ValueError(f"test_lengths: expected one length or more, each 1 or more, got {shortest}")
        if self.solved is not None and self.question.measure == "nats":
            raise ValueError(f"solved: expected none for {self.question.name}, whose score is a cross-entropy")
        if self.solved is not None and self.schedule != "constant":
            raise ValueError("solved: expected with schedule=constant, because the last step is not known")
        low, high = self.effective_train_lengths
        if not 1 <= low <= high:
            raise ValueError(f"train_lengths: expected two numbers, 1 or more and in order, got {low} and {high}")
        try:
            for length in (low, high, *self.effective_test_lengths):
                tokens = self.question.row_length(length)
                if self.random_positions is not None and self.random_positions < tokens - 1:
                    raise ValueError(
                        f"random_positions: expected {tokens - 1} or more, one for each token of length {length}; "
                        f"got {self.random_positions}"
                    )
        except OrderproofError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def effective_train_lengths(self) -> tuple[int, int]:
        """The shortest and the longest training length, with the question's default."""
        return self.train_lengths or self.question.train_lengths

    @property
    def effective_test_lengths(self) -> tuple[int, ...]:
        """The test lengths, with the question's default."""
        return self.question.test_lengths if self.test_lengths is None else self.test_lengths

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain data that `model_validate` accepts."""
        data: dict[str, Any] = self.model_dump(mode="json")
        data[QUESTION_KEY] = {NAME_KEY: self.question.name, **data[QUESTION_KEY]}
        return data

    @cached_property
    def id(self) -> str:
        """The id of the run."""
        return config_digest(self.to_dict())

    @cached_property
    def cell_id(self) -> str:
        """The id shared by the runs that differ only in the seed."""
        return _digest_without(self.to_dict(), SEED_KEY)

    @cached_property
    def batch_id(self) -> str:
        """The id shared by the runs that can be trained together: `stretch` acts after training."""
        return _digest_without(self.to_dict(), SEED_KEY, "learning_rate", "stretch")

    @cached_property
    def sweep_id(self) -> str:
        """The id shared by the runs of a sweep and by those that use its result."""
        return _digest_without(self.to_dict(), SEED_KEY, "learning_rate", "stretch", "test_lengths", "test_rows")


def _digest_without(data: dict[str, Any], *keys: str) -> str:
    return config_digest({key: value for key, value in data.items() if key not in keys})


def config_digest(data: dict[str, Any]) -> str:
    """The first sixteen hexadecimal digits of the SHA-256 of the canonical JSON."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
