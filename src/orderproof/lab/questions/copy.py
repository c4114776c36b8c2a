"""copy: write the string again.

    x_1 ... x_n  SEP  x_1 ... x_n  END          the argument and the ceiling are in `orderproof.lab.transcription`

With `same` all letters of a string are one letter (the authors' rsc). What is left is to count: how
many there were. One order is all there is, so the ceiling is 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.transcription import TranscriptionQuestion


class Copy(TranscriptionQuestion):
    """The string as it was."""

    name: ClassVar[str] = "copy"
    statement: ClassVar[str] = "Write the string again, letter by letter, and stop."

    same: bool = False

    def ways(self, length: int) -> tuple[int, ...]:
        return (self.letters,) if self.same else super().ways(length)

    def string(self, chosen: torch.Tensor, length: int) -> torch.Tensor:
        return chosen.expand(-1, length)

    def written(self, string: torch.Tensor) -> torch.Tensor:
        return string

    def ceiling(self, length: int) -> Ceiling:
        if self.same:
            return Ceiling(value=Fraction(1), how="every bag has one order only; what is left is to count")
        return super().ceiling(length)


QUESTION = Copy
