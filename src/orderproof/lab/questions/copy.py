"""copy: copy the string.

    x_1 ... x_n  SEP  x_1 ... x_n  END

`orderproof.lab.transcription_question` has the protocol and the ceiling. With `same`, all letters of a string are equal
(`rsc` in the source), so that only their number matters: each bag has one permutation and the ceiling is 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.transcription_question import TranscriptionQuestion


class Copy(TranscriptionQuestion):
    """The string itself."""

    name: ClassVar[str] = "copy"
    statement: ClassVar[str] = "Copy the string letter by letter, then stop."

    same: bool = False

    def choice_counts(self, length: int) -> tuple[int, ...]:
        return (self.letters,) if self.same else super().choice_counts(length)

    def string(self, chosen: torch.Tensor, length: int) -> torch.Tensor:
        return chosen.expand(-1, length)

    def target_string(self, string: torch.Tensor) -> torch.Tensor:
        return string

    def ceiling(self, length: int) -> Ceiling:
        if self.same:
            return Ceiling(value=Fraction(1), derivation="every bag has one permutation only; the task is to count")
        return super().ceiling(length)


QUESTION = Copy
