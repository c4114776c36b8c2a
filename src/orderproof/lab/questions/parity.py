"""parity: whether the number of ones is even.

    s_1 ... s_n  e          answer at e: (s_1 + ... + s_n) mod 2

A control: the sum does not hang on the order, so the bag is enough and the ceiling is 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.strings import StringQuestion


class Parity(StringQuestion):
    """Whether there are evenly many ones."""

    name: ClassVar[str] = "parity"
    statement: ClassVar[str] = "Is the number of ones even?"
    needs_order: ClassVar[bool] = False

    @property
    def alphabet(self) -> int:
        return 2

    def answer(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen.sum(dim=1, keepdim=True) % 2

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(value=Fraction(1), how="the answer is a sum over the bag")


QUESTION = Parity
