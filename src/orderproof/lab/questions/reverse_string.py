"""reverse_string: the string backwards, at empty tokens.

    s_1 ... s_n  e ... e          target at the i-th e: s_{n+1-i}

The ceiling is the share of the most frequent letter (`orderproof.lab.mode_share`).
"""

from __future__ import annotations

from typing import ClassVar

import torch

from orderproof.lab.string_question import RearrangementQuestion


class ReverseString(RearrangementQuestion):
    """The reversed string."""

    name: ClassVar[str] = "reverse_string"
    statement: ClassVar[str] = "What is the string, read backwards?"

    def target_letters(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen.flip(1)


QUESTION = ReverseString
