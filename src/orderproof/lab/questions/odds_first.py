"""odds_first: the letters of odd places, then those of even places.

    s_1 ... s_n  e ... e          answer at the e: s_1 s_3 s_5 ... s_2 s_4 s_6 ...

The answer is an order of the string; who is blind to order says the commonest letter everywhere, and its share of the
string is the ceiling (`orderproof.lab.letter_counts`).
"""

from __future__ import annotations

from typing import ClassVar

import torch

from orderproof.lab.strings import LetterByLetter


class OddsFirst(LetterByLetter):
    """Every other letter, then the others."""

    name: ClassVar[str] = "odds_first"
    statement: ClassVar[str] = "What are the letters of odd places, and after them those of even places?"

    def answer(self, chosen: torch.Tensor) -> torch.Tensor:
        return torch.cat([chosen[:, 0::2], chosen[:, 1::2]], dim=1)


QUESTION = OddsFirst
