"""duplicate_string: the string twice, at empty tokens.

    s_1 ... s_n  e ... e          2n tokens e, with the targets s_1 ... s_n s_1 ... s_n

Each letter occurs twice as often as in the string, so its share is the same: the ceiling is the share of the most
frequent letter (`orderproof.lab.mode_share`).
"""

from __future__ import annotations

from typing import ClassVar

import torch

from orderproof.lab.string_question import RearrangementQuestion


class DuplicateString(RearrangementQuestion):
    """The string, twice."""

    name: ClassVar[str] = "duplicate_string"
    statement: ClassVar[str] = "What is the string, repeated twice?"

    def target_letters(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen.repeat(1, 2)


QUESTION = DuplicateString
