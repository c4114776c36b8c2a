"""Ceilings by number, as they were worked out apart from this code."""

from __future__ import annotations

from fractions import Fraction

import pytest

from orderproof.lab.asking import make


@pytest.mark.parametrize(("length", "share"), [(4, 0.625), (10, 0.5547), (40, 0.5123), (200, 0.5024)])
def test_even_pairs(length, share):
    ceiling = make("even_pairs", {}).ceiling(length)
    assert ceiling is not None
    assert ceiling.exact
    assert float(ceiling.value) == pytest.approx(share, abs=5e-5)


@pytest.mark.parametrize(("length", "share"), [(3, Fraction(171_700, 10**6)), (5, Fraction(91_962_520, 10**10))])
def test_copy_of_a_hundred_letters(length, share):
    for name in ("copy", "reverse"):
        ceiling = make(name, {"letters": 100}).ceiling(length)
        assert ceiling is not None
        assert ceiling.value == share


def test_repeating_one_letter_is_counting():
    ceiling = make("copy", {"same": True}).ceiling(20)
    assert ceiling is not None
    assert ceiling.value == 1
