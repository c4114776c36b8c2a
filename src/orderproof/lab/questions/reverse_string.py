"""reverse_string: the string backwards, at empty tokens.

    s_1 ... s_n  e ... e          answer at the i-th e: s_{n+1-i}

Who is blind to order says the commonest letter everywhere: its share of the string is the ceiling
(`orderproof.lab.letter_counts`).
"""

from __future__ import annotations

from typing import ClassVar

import torch

from orderproof.lab.strings import LetterByLetter


class ReverseString(LetterByLetter):
    """The string from its end."""

    name: ClassVar[str] = "reverse_string"
    statement: ClassVar[str] = "What is the string, read backwards?"

    def answer(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen.flip(1)


QUESTION = ReverseString
