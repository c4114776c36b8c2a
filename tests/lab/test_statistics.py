"""Statistics of a few runs, compared with other implementations and with sums by hand, and their coverage."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest, trim_mean, ttest_rel
from scipy.stats.mstats import trimmed_mean_ci

from orderproof.errors import UsageError
from orderproof.lab.statistics import (
    BinomialAccuracy,
    interquartile_interval,
    interquartile_mean,
    paired_difference,
)


@pytest.mark.parametrize("runs", [1, 2, 3, 4, 5, 8, 11, 40])
def test_the_interquartile_mean_is_scipys_trimmed_mean(runs):
    scores = np.random.default_rng(runs).lognormal(size=(runs, 3))
    assert interquartile_mean(scores) == pytest.approx(trim_mean(scores, 0.25), rel=1e-14)
    assert interquartile_mean(scores.T, axis=1) == pytest.approx(trim_mean(scores, 0.25), rel=1e-14)


def test_one_failed_seed_of_five_does_not_move_the_interquartile_mean():
    assert interquartile_mean([0.0, 0.7, 0.8, 0.9, 0.95]) == pytest.approx(0.8)
    assert np.mean([0.0, 0.7, 0.8, 0.9, 0.95]) < 0.7


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_runs_that_agree_and_single_runs_have_no_width(value):
    for scores in ([[value, 2 * value]], [[value, 2 * value]] * 5):
        found = interquartile_interval(scores)
        for end in (found.value, found.low, found.high):
            assert end.tolist() == [value, 2 * value]


@pytest.mark.parametrize("runs", [2, 3, 4, 5, 10, 13])
def test_the_interval_of_the_interquartile_mean_is_scipys(runs):
    scores = np.random.default_rng(runs).lognormal(size=(runs, 2))
    found = interquartile_interval(scores)
    for k in range(2):
        share = (runs // 4) / runs  # scipy divides by the nominal share, which must be the one that is dropped
        ends = trimmed_mean_ci(scores[:, k], limits=(share + 1e-12, share + 1e-12))
        assert (float(found.low[k]), float(found.high[k])) == pytest.approx(tuple(ends), rel=1e-9)


@pytest.mark.parametrize(("runs", "least"), [(3, 0.94), (5, 0.91), (10, 0.92)])
def test_the_interval_covers_what_it_says(runs, least):
    """Of 2,000 studies with normal scores; the percentile bootstrap covers 75% at 3 seeds and 89% at 5."""
    scores = np.random.default_rng(runs).normal(size=(runs, 2_000))
    found = interquartile_interval(scores)
    covered = float(((found.low <= 0) & (found.high >= 0)).mean())
    assert least <= covered <= 0.97


def test_the_paired_difference_is_students_and_counts_the_seeds():
    rng = np.random.default_rng(1)
    x, y = rng.random(10), rng.random(10)
    y[0] = x[0]
    found = paired_difference(x, y)
    expected = ttest_rel(x, y).confidence_interval(0.95)
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(x - y), expected.low, expected.high))
    assert (found.better, found.worse) == (int((x > y).sum()), int((x < y).sum()))
    assert found.better + found.worse == 9
    wider, level = paired_difference(x, y, comparisons=20), ttest_rel(x, y).confidence_interval(1 - 0.05 / 20)
    assert (wider.low, wider.high) == pytest.approx((level.low, level.high))
    assert paired_difference([0.5], [0.4]) is None


@pytest.mark.parametrize(("right", "scored"), [(0, 7), (7, 7), (1, 1), (0, 1), (3, 10), (61, 100), (1650, 3264)])
def test_the_interval_of_an_accuracy_is_scipys_exact_one(right, scored):
    exact = binomtest(right, scored).proportion_ci(0.95, method="exact")
    assert BinomialAccuracy(right=right, scored=scored).interval() == pytest.approx((exact.low, exact.high), rel=1e-9)


def test_its_ends_are_where_either_tail_has_its_share():
    """The definition itself: at the lower end 9 right or more of 10 have probability 2.5%, at the upper 9 or fewer."""
    low, high = BinomialAccuracy(right=9, scored=10).interval()

    def among(p: float, counts: range) -> float:
        return sum(comb(10, k) * p**k * (1 - p) ** (10 - k) for k in counts)

    assert among(low, range(9, 11)) == pytest.approx(0.025)
    assert among(high, range(10)) == pytest.approx(0.025)
    assert 0.9 - low > 2 * (high - 0.9)  # nothing like a symmetric interval around the accuracy


def test_only_an_accuracy_beyond_chance_exceeds_a_ceiling():
    assert not BinomialAccuracy(right=1632, scored=3264).exceeds(0.5)
    assert not BinomialAccuracy(right=59, scored=100).exceeds(0.5)
    assert BinomialAccuracy(right=61, scored=100).exceeds(0.5)
    assert not BinomialAccuracy(right=5, scored=5).exceeds(0.5)  # 5 right of 5 is 1/32: not below 2.5%
    assert BinomialAccuracy(right=6, scored=6).exceeds(0.5)
    assert not BinomialAccuracy(right=100, scored=100).exceeds(1.0)
    assert not BinomialAccuracy(right=0, scored=100).exceeds(0.0)


def test_the_interval_covers_at_least_as_often_as_it_says():
    """Exactly, by summing over every count: at each true accuracy 95% or more."""
    scored = 20
    intervals = [BinomialAccuracy(right=k, scored=scored).interval() for k in range(scored + 1)]
    for p in np.linspace(0.01, 0.99, 33):
        chances = [comb(scored, k) * p**k * (1 - p) ** (scored - k) for k in range(scored + 1)]
        assert sum(c for c, (low, high) in zip(chances, intervals, strict=True) if low <= p <= high) >= 0.95


@pytest.mark.parametrize(("right", "scored"), [(-1, 5), (6, 5), (0, 0)])
def test_counts_that_cannot_be_are_refused(right, scored):
    with pytest.raises(UsageError, match=f"expected 0 <= right <= scored and scored >= 1; got {right} of {scored}"):
        BinomialAccuracy(right=right, scored=scored)


@pytest.mark.parametrize("scores", [[], [0.5, float("nan")], [[0.5, float("inf")]], 0.5])
def test_no_runs_and_scores_that_are_not_finite_are_refused(scores):
    with pytest.raises(UsageError, match="expected at least one run with finite scores"):
        interquartile_interval(scores)


def test_cells_with_other_seeds_are_not_compared():
    with pytest.raises(UsageError, match="expected one score for each seed of both cells"):
        paired_difference([0.1, 0.2], [0.1, 0.2, 0.3])
