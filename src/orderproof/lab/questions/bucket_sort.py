"""bucket_sort: the letters in ascending order, at empty tokens.

    s_1 ... s_n  e ... e          target at the i-th e: the i-th smallest of s_1 ... s_n

The answer is a function of the bag, so the order of the *string* is irrelevant. But the empty tokens are identical: a
predictor without positions gives one letter at all of them, and the ceiling is the share of the most frequent letter
(`orderproof.lab.mode_share`).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field

from orderproof.lab.string_question import RearrangementQuestion


class BucketSort(RearrangementQuestion):
    """The letters sorted."""

    name: ClassVar[str] = "bucket_sort"
    statement: ClassVar[str] = "What are the letters in ascending order?"

    letters: int = Field(default=5, ge=2)

    def target_letters(self, chosen: torch.Tensor) -> torch.Tensor:
        return chosen.sort(dim=1).values


QUESTION = BucketSort
