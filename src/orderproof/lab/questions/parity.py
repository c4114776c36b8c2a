"""parity: the parity of the number of ones.

    s_1 ... s_n  e          target at e: (s_1 + ... + s_n) mod 2

A control: the sum does not depend on the order, so the bag is sufficient and the ceiling is 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.string_question import StringQuestion


class Parity(StringQuestion):
    """The number of ones modulo 2."""

    name: ClassVar[str] = "parity"
    statement: ClassVar[str] = "Is the number of ones even?"
    needs_order: ClassVar[bool] = False

    @property
    def alphabet_size(self) -> int:
        return 2

    def target_letters(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen.sum(dim=1, keepdim=True) % 2

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(value=Fraction(1), derivation="the answer is a sum over the bag")


QUESTION = Parity
