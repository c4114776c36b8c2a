"""missing_duplicate: the letter that is hidden in a string that stands there twice.

    s_1 ... s_n s_1 ... s_n  e          one of the 2n replaced by h; answer at e: the letter it was

A control, though its authors count it among the context-sensitive tasks. A string that stands there twice has evenly
many ones; if with one letter hidden they are odd the letter was a one. The bag's parity tells: the ceiling is 1.
Length is that of the string, so a row has 2n + 1 tokens.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.strings import StringQuestion

HIDDEN = 2


class MissingDuplicate(StringQuestion):
    """The hidden letter."""

    name: ClassVar[str] = "missing_duplicate"
    statement: ClassVar[str] = "Which letter is hidden in a string that stands there twice?"
    needs_order: ClassVar[bool] = False

    @property
    def alphabet(self) -> int:
        return 3

    @property
    def answers(self) -> tuple[int, ...]:
        return (0, 1)

    def ways(self, length: int) -> tuple[int, ...]:
        return (2,) * length + (2 * length,)

    def string(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen[:, :-1].repeat(1, 2).scatter(1, chosen[:, -1:], HIDDEN)

    def answer(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen[:, :-1].repeat(1, 2).gather(1, chosen[:, -1:])

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(value=Fraction(1), how="the ones seen are odd if and only if the hidden letter is a one")


QUESTION = MissingDuplicate
