"""cycle_navigation: where on a ring of five one is after steps back, stays and steps on.

    a_1 ... a_n  e          a_i in {0, 1, 2}; answer at e: (a_1 - 1) + ... + (a_n - 1) mod 5

A control: steps add up in any order, so the bag is enough and the ceiling is 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.strings import StringQuestion

RING = 5


class CycleNavigation(StringQuestion):
    """Where the steps lead."""

    name: ClassVar[str] = "cycle_navigation"
    statement: ClassVar[str] = "Where on a ring of five do these steps of -1, 0 and 1 lead?"
    needs_order: ClassVar[bool] = False

    @property
    def alphabet(self) -> int:
        return 3

    @property
    def answers(self) -> tuple[int, ...]:
        return tuple(range(RING))

    def answer(self, chosen: torch.Tensor) -> torch.Tensor:
        return (chosen - 1).sum(dim=1, keepdim=True) % RING

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(value=Fraction(1), how="the answer is a sum over the bag")


QUESTION = CycleNavigation
