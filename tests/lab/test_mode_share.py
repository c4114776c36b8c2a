"""How often the commonest letter comes, against counting it in every string."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from orderproof.lab.mode_share import count_strings, expected_mode_share


def commonest(letters: int, length: int) -> list[int]:
    return [max(map(word.count, word)) for word in product(range(letters), repeat=length)]


@pytest.mark.parametrize(("letters", "length"), [(2, 1), (2, 6), (3, 1), (3, 5), (4, 4), (5, 3), (6, 2)])
def test_the_share_agrees_with_enumeration(letters, length):
    counts = commonest(letters, length)
    assert expected_mode_share(letters, length) == Fraction(sum(counts), length * len(counts))
    for k in range(length + 1):
        assert count_strings(letters, length, at_most=k) == sum(count <= k for count in counts)


@pytest.mark.parametrize("length", [1, 2, 9, 30])
def test_two_letters_agree_with_the_random_walk(length):
    every = 2**length
    over = sum(every - count_strings(2, length, at_most=k) for k in range(length))
    assert expected_mode_share(2, length) == Fraction(over, length * every)
