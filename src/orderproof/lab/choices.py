"""Questions whose rows come of independent even choices: every row is one tuple of numbers, all equally likely.

One description serves three ends: drawing rows, listing all of them where they are few (a test set without sampling
noise, in which every order of each bag stands as often as the question asks it), and adding them up for a ceiling.
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

from orderproof.lab.question import Batch, Question, Row

if TYPE_CHECKING:
    from jaxtyping import Int

AT_A_TIME = 4096
"""How many rows are built together where all are listed."""


class ChoiceQuestion(Question):
    """A question given by how many ways there are at each choice, and by the row that the choices make."""

    @abstractmethod
    def ways(self, length: int) -> tuple[int, ...]:
        """How many ways there are at each choice."""

    @abstractmethod
    def build(self, chosen: Int[Tensor, "row choice"], length: int) -> Batch:
        """The rows that the choices make."""

    def draw(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Every choice even and independent."""
        ways = torch.tensor(self.ways(length), dtype=torch.float64)
        even = torch.rand(rows, len(ways), dtype=torch.float64, generator=generator)
        return self.build((even * ways).long(), length)

    def test(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        """Every row once where there are no more than asked for, and so every order of each bag; else a draw."""
        ways = self.ways(length)
        if math.prod(ways) > rows:
            return self.draw(length, rows, generator)
        grid = torch.meshgrid(*(torch.arange(n) for n in ways), indexing="ij")
        return self.build(torch.stack([each.reshape(-1) for each in grid], dim=1), length)

    def everything(self, length: int) -> Iterator[Row]:
        """Every tuple of choices."""
        ways = self.ways(length)
        weight = Fraction(1, math.prod(ways))
        every = product(*(range(n) for n in ways))
        while some := [chosen for _, chosen in zip(range(AT_A_TIME), every, strict=False)]:
            made = self.build(torch.tensor(some), length)
            for tokens, targets in zip(made.tokens.tolist(), made.targets.tolist(), strict=True):
                yield Row(tokens=tuple(tokens), targets=tuple(targets), weight=weight)
