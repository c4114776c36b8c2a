"""cycle_navigation: the position on a ring of five after steps of -1, 0 and 1.

    a_1 ... a_n  e          a_i in {0, 1, 2}; target at e: (a_1 - 1) + ... + (a_n - 1) mod 5

A control: the sum does not depend on the order of the steps, so the bag is sufficient and the ceiling is 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.string_question import StringQuestion

RING_SIZE = 5


class CycleNavigation(StringQuestion):
    """The sum of the steps modulo the size of the ring."""

    name: ClassVar[str] = "cycle_navigation"
    statement: ClassVar[str] = "Where on a ring of five do these steps of -1, 0 and 1 lead?"
    needs_order: ClassVar[bool] = False

    @property
    def alphabet_size(self) -> int:
        return 3

    @property
    def answer_tokens(self) -> tuple[int, ...]:
        return tuple(range(RING_SIZE))

    def target_letters(self, chosen: torch.Tensor) -> torch.Tensor:
        return (chosen - 1).sum(dim=1, keepdim=True) % RING_SIZE

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(value=Fraction(1), derivation="the answer is a sum over the bag")


QUESTION = CycleNavigation
