"""duplicate_string: the string twice, at empty tokens.

    s_1 ... s_n  e ... e          2n of e, and the answer at them: s_1 ... s_n s_1 ... s_n

Each letter comes twice as often as in the string, so its share is as it was there: that of the commonest is the
ceiling (`orderproof.lab.letter_counts`).
"""

from __future__ import annotations

from typing import ClassVar

import torch

from orderproof.lab.strings import LetterByLetter


class DuplicateString(LetterByLetter):
    """The string and the string again."""

    name: ClassVar[str] = "duplicate_string"
    statement: ClassVar[str] = "What is the string, said twice?"

    def answer(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen.repeat(1, 2)


QUESTION = DuplicateString
