"""bucket_sort: the letters in ascending order, at empty tokens.

    s_1 ... s_n  e ... e          answer at the i-th e: the i-th smallest of s_1 ... s_n

What is asked is a function of the bag, so the order of the *string* is not needed. But the empty tokens are all alike:
who cannot tell the first from the last says one letter at all of them, and the share of the commonest is the ceiling
(`orderproof.lab.letter_counts`).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field

from orderproof.lab.strings import LetterByLetter


class BucketSort(LetterByLetter):
    """The letters sorted."""

    name: ClassVar[str] = "bucket_sort"
    statement: ClassVar[str] = "What are the letters in ascending order?"

    letters: int = Field(default=5, ge=2)

    def answer(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen.sort(dim=1).values


QUESTION = BucketSort
