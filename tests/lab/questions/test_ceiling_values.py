"""Ceilings compared with values computed independently of this code."""

from __future__ import annotations

from fractions import Fraction

import pytest

from orderproof.lab.registry import make_question


@pytest.mark.parametrize(("length", "share"), [(4, 0.625), (10, 0.5547), (40, 0.5123), (200, 0.5024)])
def test_even_pairs(length, share):
    ceiling = make_question("even_pairs", {}).ceiling(length)
    assert ceiling is not None
    assert ceiling.exact
    assert float(ceiling.value) == pytest.approx(share, abs=5e-5)


@pytest.mark.parametrize(("length", "share"), [(3, Fraction(171_700, 10**6)), (5, Fraction(91_962_520, 10**10))])
def test_copy_of_a_hundred_letters(length, share):
    for name in ("copy", "reverse"):
        ceiling = make_question(name, {"letters": 100}).ceiling(length)
        assert ceiling is not None
        assert ceiling.value == share


def test_copying_one_repeated_letter_has_ceiling_one():
    ceiling = make_question("copy", {"same": True}).ceiling(20)
    assert ceiling is not None
    assert ceiling.value == 1


@pytest.mark.parametrize("name", ["reverse_string", "duplicate_string", "odds_first"])
@pytest.mark.parametrize(("length", "share"), [(10, 0.6230), (40, 0.5627)])
def test_one_letter_at_all_positions(name, length, share):
    assert float(make_question(name, {}).ceiling(length).value) == pytest.approx(share, abs=5e-5)


def test_the_mean_ceiling_of_reverse_string_beyond_the_trained_lengths():
    question = make_question("reverse_string", {})
    shares = [float(question.ceiling(length).value) for length in range(41, 501)]
    assert sum(shares) / len(shares) == pytest.approx(0.5278, abs=5e-5)


@pytest.mark.parametrize(("length", "share"), [(10, 0.375), (40, 0.285)])
def test_bucket_sort(length, share):
    assert float(make_question("bucket_sort", {}).ceiling(length).value) == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize("name", ["parity", "cycle_navigation", "missing_duplicate"])
def test_controls(name):
    assert {make_question(name, {}).ceiling(length).value for length in (1, 2, 40, 500)} == {1}


@pytest.mark.parametrize(
    ("ignored", "pairs", "share"), [(0.8, 3, 0.975), (0.8, 6, 0.914), (0.2, 3, 0.9), (0.2, 7, 0.749)]
)
def test_flip_flop(ignored, pairs, share):
    question = make_question("flip_flop", {"ignored": ignored})
    assert float(question.ceiling(pairs).value) == pytest.approx(share, abs=5e-4)
