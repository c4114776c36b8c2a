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


@pytest.mark.parametrize("name", ["reverse_string", "duplicate_string", "odds_first"])
@pytest.mark.parametrize(("length", "share"), [(10, 0.6230), (40, 0.5627)])
def test_one_letter_for_all_places(name, length, share):
    assert float(make(name, {}).ceiling(length).value) == pytest.approx(share, abs=5e-5)


def test_one_letter_for_all_places_on_the_lengths_beyond_the_trained():
    asked = make("reverse_string", {})
    shares = [float(asked.ceiling(length).value) for length in range(41, 501)]
    assert sum(shares) / len(shares) == pytest.approx(0.5278, abs=5e-5)


@pytest.mark.parametrize(("length", "share"), [(10, 0.375), (40, 0.285)])
def test_bucket_sort(length, share):
    assert float(make("bucket_sort", {}).ceiling(length).value) == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize("name", ["parity", "cycle_navigation", "missing_duplicate"])
def test_controls(name):
    assert {make(name, {}).ceiling(length).value for length in (1, 2, 40, 500)} == {1}


@pytest.mark.parametrize(
    ("ignored", "pairs", "share"), [(0.8, 3, 0.975), (0.8, 6, 0.914), (0.2, 3, 0.9), (0.2, 7, 0.749)]
)
def test_flip_flop(ignored, pairs, share):
    asked = make("flip_flop", {"ignored": ignored})
    assert float(asked.ceiling(pairs).value) == pytest.approx(share, abs=5e-4)
