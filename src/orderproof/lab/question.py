"""The contract of a question: rows of tokens, what is to be said at some of them, and how well that can be done blind.

A reader that is blind to order knows, at a place, the token there and the bag of all the others; its **ceiling** is
the best score that any function of these two reaches. A question that can work it out exactly does so.

A question is drawn for a *length*, its own measure of size (the words of a sentence, the letters to copy); the tokens
of a row follow from it.
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
"""The target of a place at which nothing is asked, as torch's losses have it."""

Measure = Literal["accuracy", "exact_match", "nats"]
"""The share of the scored places that are right; of the rows with every place right; or the cross-entropy a place."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows of one length."""

    tokens: Int[Tensor, "row token"]
    targets: Int[Tensor, "row token"]
    """What is to be said at each token; `UNSCORED` where nothing is asked."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row and how often it comes, for sums over all rows."""

    tokens: tuple[int, ...]
    targets: tuple[int, ...]
    weight: Fraction


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The best that a reader blind to order can score."""

    value: Fraction | float
    """A fraction where it is known exactly."""
    how: str
    """How it was worked out, in one line."""

    @property
    def exact(self) -> bool:
        """Whether it is a fraction, not a number rounded."""
        return isinstance(self.value, Fraction)


class Question(BaseModel, ABC):
    """A task, with its settings as fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    statement: ClassVar[str]
    """What is asked, in one sentence."""
    source: ClassVar[str]
    """Authors year, title, identifier; ours where it is ours."""
    measure: ClassVar[Measure] = "accuracy"
    causal: ClassVar[bool | None] = None
    """Whether only a decoder (True) or only an encoder (False) can be asked; None: either."""
    needs_order: ClassVar[bool] = True
    """False for a control: a bag of tokens is enough."""
    balanced: ClassVar[bool] = False
    """Every blind reader, not only the best, scores exactly the ceiling on the test set."""
    train_lengths: ClassVar[tuple[int, int]]
    """The shortest and the longest length to train at, unless a study says otherwise."""
    test_lengths: ClassVar[tuple[int, ...]]

    @property
    @abstractmethod
    def vocabulary(self) -> int:
        """How many different tokens there are, answers included."""

    @property
    def answers(self) -> tuple[int, ...] | None:
        """The tokens among which an answer is chosen; None: all of them."""
        return None

    @property
    def words(self) -> tuple[str, ...] | None:
        """How the tokens are written, where they are words."""
        return None

    @property
    def edition(self) -> str:
        """Which text it is about, where that differs from machine to machine; runs of several do not compare."""
        return ""

    @abstractmethod
    def tokens(self, length: int) -> int:
        """How many tokens a row of this length has. Raises `UsageError` where there are no such rows."""

    @abstractmethod
    def draw(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Rows to train on."""

    def test(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Rows to test on: about so many, in whole orbits (every order of each bag) where the question can."""
        return self.draw(length, rows, generator)

    def exhausts(self, length: int, rows: int) -> bool:
        """Whether the test set of so many rows holds every row as often as it is drawn: nobody is lucky on it."""
        return False

    def ceiling(self, length: int) -> Ceiling | None:
        """The best score of a reader blind to order on rows of this length; None where nobody knows it exactly."""
        return None

    def floor(self, length: int) -> float | None:
        """The least nats a place that any reader can pay, blind or not; None where nobody knows them."""
        return None

    def everything(self, length: int) -> Iterator[Row]:
        """Every row of this length, the weights adding up to 1: for small sizes, to check a ceiling by brute force."""
        raise NotImplementedError(f"{type(self).__name__} does not list its rows")
