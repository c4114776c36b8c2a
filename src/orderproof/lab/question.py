"""The interface of a question: a synthetic task with rows of tokens, targets at some of them, and a known ceiling.

A bag-of-tokens predictor knows, at a position, the token there and the bag of the tokens it sees, but not their order.
The **ceiling** is the best score of any such predictor, exact where the question can compute it.

A question is sampled at a *length*, its own measure of size (the words of a sentence, the letters to copy); the number
of tokens in a row follows from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Int

UNSCORED = -100
"""The target of a position that is not scored: the default `ignore_index` of torch's losses."""

Measure = Literal["accuracy", "exact_match", "nats"]
"""The share of right positions; the share of rows with every position right; or the cross-entropy per position."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows of one length."""

    tokens: Int[Tensor, "row token"]
    targets: Int[Tensor, "row token"]
    """The target at each token; `UNSCORED` where there is none."""
    positions: Int[Tensor, "row token"] | None = None
    """The position of each token; None for 0, 1, 2, ..."""


@dataclass(frozen=True, kw_only=True)
class WeightedRow:
    """One row and its probability."""

    tokens: tuple[int, ...]
    targets: tuple[int, ...]
    weight: Fraction


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The best score of a bag-of-tokens predictor."""

    value: Fraction | float
    """A fraction if it is known exactly."""
    derivation: str
    """The formula behind it, in one line."""

    @property
    def exact(self) -> bool:
        """True if the value is a fraction rather than a rounded number."""
        return isinstance(self.value, Fraction)


class Question(BaseModel, ABC):
    """A synthetic task; its fields are its settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    statement: ClassVar[str]
    """The task in one sentence."""
    source: ClassVar[str]
    """Authors year, title, identifier; "ours" for tasks of this project."""
    measure: ClassVar[Measure] = "accuracy"
    requires_causal: ClassVar[bool | None] = None
    """True if only a decoder can answer, False if only an encoder can, None if both can."""
    needs_order: ClassVar[bool] = True
    """False for a control, which the bag of tokens is sufficient to answer."""
    balanced: ClassVar[bool] = False
    """Every bag-of-tokens predictor, not only the best, scores exactly the ceiling on the test set."""
    train_lengths: ClassVar[tuple[int, int]]
    """The default range of training lengths, both ends included."""
    test_lengths: ClassVar[tuple[int, ...]]

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """The number of different tokens, answers included."""

    @property
    def answer_tokens(self) -> tuple[int, ...] | None:
        """The tokens that can be an answer; None for all."""
        return None

    @property
    def dataset_version(self) -> str:
        """The version of a text that is read from the machine; results of different versions are not compared."""
        return ""

    @abstractmethod
    def row_length(self, length: int) -> int:
        """The number of tokens in a row of this length. Raises `UsageError` if there are no such rows."""

    @abstractmethod
    def sample(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Random rows, for training."""

    def test_batch(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Rows to test on: about ``rows`` of them, or every row there is if the question can enumerate them."""
        return self.sample(length, rows, generator)

    def is_exhaustive(self, length: int, rows: int) -> bool:
        """True if a test batch of this size contains every row with its probability, so that no score is luck."""
        return False

    def ceiling(self, length: int) -> Ceiling | None:
        """The best score of a bag-of-tokens predictor on rows of this length; None if it is unknown."""
        return None

    def floor(self, length: int) -> float | None:
        """The lowest cross-entropy per position [nats] of any predictor; None if it is unknown."""
        return None

    def enumerate_rows(self, length: int) -> Iterator[WeightedRow]:
        """Every row of this length, with weights that sum to 1: for brute force at small sizes."""
        raise NotImplementedError(f"{type(self).__name__} does not enumerate its rows")
