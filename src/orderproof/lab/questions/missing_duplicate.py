"""missing_duplicate: the hidden letter in a string that is repeated twice.

    s_1 ... s_n s_1 ... s_n  e          one of the 2n letters replaced by h; target at e: the replaced letter

A control, although the source lists it among the context-sensitive tasks. A string repeated twice has an even number of
ones; if the number of visible ones is odd, the hidden letter is a one. The bag is sufficient: the ceiling is 1. The
length is that of the string, so a row has 2n + 1 tokens.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.string_question import StringQuestion

HIDDEN = 2


class MissingDuplicate(StringQuestion):
    """The hidden letter."""

    name: ClassVar[str] = "missing_duplicate"
    statement: ClassVar[str] = "Which letter is hidden in a string that is repeated twice?"
    needs_order: ClassVar[bool] = False

    @property
    def alphabet_size(self) -> int:
        return 3

    @property
    def answer_tokens(self) -> tuple[int, ...]:
        return (0, 1)

    def choice_counts(self, length: int) -> tuple[int, ...]:
        return (2,) * length + (2 * length,)

    def string(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen[:, :-1].repeat(1, 2).scatter(1, chosen[:, -1:], HIDDEN)

    def target_letters(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen[:, :-1].repeat(1, 2).gather(1, chosen[:, -1:])

    def ceiling(self, length: int) -> Ceiling:
        return Ceiling(
            value=Fraction(1), derivation="the number of visible ones is odd if and only if the hidden letter is a one"
        )


QUESTION = MissingDuplicate
