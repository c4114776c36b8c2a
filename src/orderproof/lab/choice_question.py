"""Questions whose rows follow from independent uniform choices: a row is a tuple of integers, all equally likely.

The same two methods serve random sampling, exhaustive test sets (without sampling noise, so that every permutation of a
bag occurs as often as the question has it), and enumeration for a brute-force ceiling.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.lab.question import Batch, Question, WeightedRow

if TYPE_CHECKING:
    from jaxtyping import Int

ENUMERATION_BATCH_SIZE = 4096
"""Rows built together during enumeration."""


class ChoiceQuestion(Question):
    """A question defined by the number of options of each choice, and by the row that the choices determine."""

    @abstractmethod
    def choice_counts(self, length: int) -> tuple[int, ...]:
        """The number of options of each choice."""

    @abstractmethod
    def build(self, chosen: Int[Tensor, "row choice"], length: int) -> Batch:
        """The rows that the choices determine."""

    def sample(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Uniform, independent choices."""
        counts = torch.tensor(self.choice_counts(length), dtype=torch.float64)
        uniform = torch.rand(rows, len(counts), dtype=torch.float64, generator=generator)
        return self.build((uniform * counts).long(), length)

    def test_batch(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Every row once if there are at most ``rows`` of them, otherwise a random sample.

        A sample of bags, each with all its permutations, would not do: its rows are not independent, but the
        intervals assume that they are.
        """
        if not self.is_exhaustive(length, rows):
            return self.sample(length, rows, generator)
        grid = torch.meshgrid(*(torch.arange(n) for n in self.choice_counts(length)), indexing="ij")
        return self.build(torch.stack([each.reshape(-1) for each in grid], dim=1), length)

    def is_exhaustive(self, length: int, rows: int) -> bool:
        return math.prod(self.choice_counts(length)) <= rows

    def enumerate_rows(self, length: int) -> Iterator[WeightedRow]:
        """One row for every tuple of choices."""
        counts = self.choice_counts(length)
        weight = Fraction(1, math.prod(counts))
        choices = product(*(range(n) for n in counts))
        while chosen := [each for _, each in zip(range(ENUMERATION_BATCH_SIZE), choices, strict=False)]:
            batch = self.build(torch.tensor(chosen), length)
            for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
                yield WeightedRow(tokens=tuple(tokens), targets=tuple(targets), weight=weight)
