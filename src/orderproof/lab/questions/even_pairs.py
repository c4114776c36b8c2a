"""even_pairs: the parity of the number of neighbouring letters that differ.

    s_1 ... s_n  e          target at e: 0 if the number of i with s_i != s_{i+1} is even, else 1

Each pair of different neighbours is a change of letter, so an odd number of them means that the last letter differs
from the first: the answer is whether s_1 != s_n. Of all permutations of a bag with k ones, the share in which they
differ is

    p = 2 k (n - k) / (n (n - 1))

and the best bag-of-tokens predictor gives the more likely answer. k is binomial, so the ceiling is E max(p, 1 - p).
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import ClassVar

import torch

from orderproof.lab.question import Ceiling
from orderproof.lab.string_question import StringQuestion


class EvenPairs(StringQuestion):
    """True if the first letter differs from the last."""

    name: ClassVar[str] = "even_pairs"
    statement: ClassVar[str] = "Is the number of neighbouring letters that differ even?"

    @property
    def alphabet_size(self) -> int:
        return 2

    def target_letters(self, chosen: torch.Tensor) -> torch.Tensor:
        return (chosen[:, 1:] != chosen[:, :-1]).sum(dim=1, keepdim=True) % 2

    def ceiling(self, length: int) -> Ceiling:
        value = Fraction(1)
        if length > 1:
            pairs = length * (length - 1)
            likelier = (comb(length, k) * max(d := 2 * k * (length - k), pairs - d) for k in range(length + 1))
            value = Fraction(sum(likelier), pairs * 2**length)
        return Ceiling(value=value, derivation="E max(p, 1 - p), p = 2k(n - k) / (n(n - 1)), k ones of n: binomial")


QUESTION = EvenPairs
