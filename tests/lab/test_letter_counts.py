"""How often the commonest letter comes, against counting it in every string."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from orderproof.lab.letter_counts import largest_share, strings


def commonest(letters: int, length: int) -> list[int]:
    return [max(map(word.count, word)) for word in product(range(letters), repeat=length)]


@pytest.mark.parametrize(("letters", "length"), [(2, 1), (2, 6), (3, 1), (3, 5), (4, 4), (5, 3), (6, 2)])
def test_its_share_is_what_counting_finds(letters, length):
    counts = commonest(letters, length)
    assert largest_share(letters, length) == Fraction(sum(counts), length * len(counts))
    for k in range(length + 1):
        assert strings(letters, length, at_most=k) == sum(count <= k for count in counts)


@pytest.mark.parametrize("length", [1, 2, 9, 30])
def test_of_two_letters_the_random_walk_says_the_same(length):
    every = 2**length
    over = sum(every - strings(2, length, at_most=k) for k in range(length))
    assert largest_share(2, length) == Fraction(over, length * every)
