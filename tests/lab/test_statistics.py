"""Statistics of a few runs, compared with other implementations and with sums by hand, and their coverage."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest, trim_mean

from orderproof.errors import UsageError
from orderproof.lab.statistics import (
    BinomialAccuracy,
    bootstrap,
    interquartile_interval,
    interquartile_mean,
    probability_of_improvement,
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


def test_an_interval_lies_between_the_worst_and_the_best_run_and_around_the_value():
    scores = np.random.default_rng(0).random((5, 7))
    found = interquartile_interval(scores)
    assert (scores.min(axis=0) <= found.low).all()
    assert (found.low < found.value).all()
    assert (found.value < found.high).all()
    assert (found.high <= scores.max(axis=0)).all()


def test_the_bootstrap_has_the_quantiles_of_all_the_draws_there_are():
    """Of three runs there are 27 draws; their quantiles are what many random draws come to."""
    scores = np.array([0.0, 1.0, 10.0])
    every = [np.mean([scores[i] for i in draw]) for draw in product(range(3), repeat=3)]
    found = bootstrap([scores], lambda runs: runs.mean(axis=1), draws=40_000, confidence=0.6)
    assert float(found.value) == pytest.approx(11 / 3)
    assert (float(found.low), float(found.high)) == tuple(np.quantile(every, (0.2, 0.8)))


def test_the_strata_keep_their_sizes_and_are_not_mixed():
    seen = []

    def statistic(first, second):
        seen.append((first.shape, second.shape, set(np.unique(first)), set(np.unique(second))))
        return first.mean(axis=1) - second.mean(axis=1)

    found = bootstrap([[1.0, 2.0], [5.0, 6.0, 7.0]], statistic, draws=200)
    assert seen[0] == ((200, 2), (200, 3), {1.0, 2.0}, {5.0, 6.0, 7.0})
    assert float(found.value) == -4.5
    assert float(found.high) < 0


def test_the_same_seed_gives_the_same_interval_and_another_does_not():
    scores = np.random.default_rng(1).random(8)
    one, same, other = (interquartile_interval(scores, seed=seed, draws=300) for seed in (0, 0, 1))
    assert (one.low, one.high) == (same.low, same.high)
    assert (one.low, one.high) != (other.low, other.high)


def test_the_bootstrap_covers_what_it_should():
    """600 times 20 runs of one configuration: 95% intervals hold the true middle in most, and not in all."""
    scores = np.random.default_rng(2).normal(loc=0.6, scale=0.1, size=(20, 600))
    found = interquartile_interval(scores, draws=1_000)
    covered = np.mean((found.low <= 0.6) & (found.high >= 0.6))
    assert 0.88 <= covered <= 0.97
    half = bootstrap([scores], lambda runs: interquartile_mean(runs, axis=1), draws=1_000, confidence=0.5)
    assert 0.42 <= np.mean((half.low <= 0.6) & (half.high >= 0.6)) <= 0.56


def test_the_probability_of_improvement_counts_pairs_and_halves_of_ties():
    """By hand: 3 > 1, 3 > 2, 3 = 3; 2 > 1, 2 = 2, 2 < 3: 2.5 + 1.5 of 6 pairs. The other way round it is the rest."""
    found = probability_of_improvement([3.0, 2.0], [1.0, 2.0, 3.0])
    assert float(found.value) == pytest.approx(4 / 6)
    assert float(probability_of_improvement([1.0, 2.0, 3.0], [3.0, 2.0]).value) == pytest.approx(2 / 6)
    assert 0 <= found.low < found.value < found.high <= 1


def test_every_length_has_equal_weight_and_lengths_are_not_mixed():
    """The first is better at one length and worse at the other; of all scores in one heap it would win 3 pairs of 4."""
    assert float(probability_of_improvement([[9.0, 1.0]], [[0.0, 2.0]]).value) == 0.5


def test_the_probability_is_of_being_better_not_of_a_better_mean():
    """One run in three is far better, two are a little worse: the mean is higher, the probability is 1/3."""
    one, other = [1.0, 0.1, 0.1], [0.2, 0.2, 0.2]
    assert np.mean(one) > np.mean(other)
    assert float(probability_of_improvement(one, other).value) == pytest.approx(1 / 3)


def test_equal_runs_have_probability_one_half_and_better_ones_have_one():
    equal = probability_of_improvement([0.5] * 5, [0.5] * 4)
    assert (equal.value, equal.low, equal.high) == (0.5, 0.5, 0.5)
    better = probability_of_improvement([0.9, 0.8], [0.1, 0.2, 0.3])
    assert (better.value, better.low, better.high) == (1.0, 1.0, 1.0)


def test_the_interval_of_an_improvement_has_the_quantiles_of_drawing_runs_again():
    generator = np.random.default_rng(3)
    one, other = generator.normal(0.3, 1, size=(6, 2)), generator.normal(0, 1, size=(5, 2))
    found = probability_of_improvement(one, other, draws=20_000)
    drawn = []
    for _ in range(20_000):
        a, b = one[generator.integers(6, size=6)], other[generator.integers(5, size=5)]
        drawn.append(np.mean(a[:, None] > b[None]))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, (0.025, 0.975))), abs=0.03)


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


def test_scores_at_different_lengths_are_not_compared():
    with pytest.raises(UsageError, match="expected scores at the same lengths"):
        probability_of_improvement([[0.1, 0.2]], [[0.1, 0.2, 0.3]])
