"""Statistics of a few runs: what to say of five seeds, and whether one accuracy is above a ceiling.

*Interquartile mean.* Of n scores in order, s_1 <= ... <= s_n, the floor(n/4) lowest and as many highest are left out:

    IQM = mean(s_(k+1), ..., s_(n-k)),        k = floor(n / 4)

One seed that fails does not move it as it moves a mean; with 3 seeds or fewer it is the mean.

*Stratified bootstrap.* Runs are drawn again, with replacement, as many as there are, separately in each stratum, and
the statistic is worked out anew; the 2.5% and 97.5% quantiles of many such draws are the interval. There a stratum
is a task, whose runs have nothing to do with those of another task. Here one run is scored at every length, so a
run is drawn whole, with all its scores, and the strata are the configurations. A percentile interval over few runs
is too narrow: it cannot reach past the best and the worst of them.

*Probability of improvement.* That a run of X scores better than a run of Y, where m tasks (here lengths) count alike:

    P(X > Y) = 1/m sum_t 1/(N M) sum_(i,j) S(x_(t,i), y_(t,j)),      S = 1 if x > y,  1/2 if x = y,  0 if x < y

Source: Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice", arXiv:2108.13264,
sections 4.1 to 4.3.

*Clopper and Pearson.* With x right among n independent trials, the accuracies p that are not rejected by either
one-sided test at level a/2. With B(q; a, b) the q-quantile of the beta distribution:

    low = B(a/2; x, n - x + 1)  (0 if x = 0),        high = B(1 - a/2; x + 1, n - x)  (1 if x = n)

It covers the true accuracy at least as often as it says. Several places of one row are no independent trials, nor are
the same rows read by several seeds: it is for one run.
Source: Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the binomial",
Biometrika 26(4), 404-413.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orderproof.errors import UsageError

Array = NDArray[np.float64]
DRAWS = 5_000
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A statistic with an interval; one number each, or one for each column of the scores."""

    value: Array
    low: Array
    high: Array


def interquartile_mean(scores: ArrayLike, *, axis: int = 0) -> Array:
    """The mean of the middle half along an axis. Raises `UsageError` where there are no scores."""
    ordered = np.sort(_scores(scores), axis=axis)
    runs = ordered.shape[axis]
    cut = runs // 4
    return np.asarray(np.take(ordered, range(cut, runs - cut), axis=axis).mean(axis=axis))


def bootstrap(
    strata: Sequence[ArrayLike],
    statistic: Callable[..., Array],
    *,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Interval:
    """The statistic of the strata with its stratified bootstrap interval.

    Each stratum has a run a row. The statistic is called with the strata, each with draws in front:
    ``[draw, run, ...]``, and returns ``[draw, ...]``. Raises `UsageError` where a stratum is empty or not finite.
    """
    given = [_scores(stratum) for stratum in strata]
    generator = np.random.default_rng(seed)
    again = [runs[generator.integers(len(runs), size=(draws, len(runs)))] for runs in given]
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(*again), (tail, 1 - tail), axis=0)
    return Interval(value=statistic(*(runs[None] for runs in given))[0], low=low, high=high)


def interquartile_interval(scores: ArrayLike, *, seed: int = 0, draws: int = DRAWS) -> Interval:
    """The interquartile mean over runs (the rows), of each column apart, with its bootstrap interval."""
    return bootstrap([scores], lambda runs: interquartile_mean(runs, axis=1), seed=seed, draws=draws)


def probability_of_improvement(first: ArrayLike, second: ArrayLike, *, seed: int = 0, draws: int = DRAWS) -> Interval:
    """How probably a run of the first scores higher than one of the second, over the columns they share.

    Raises `UsageError` where they have not the same columns.
    """
    one, other = _scores(first), _scores(second)
    if one.shape[1:] != other.shape[1:]:
        raise UsageError(f"expected scores at the same lengths; got {one.shape[1:]} and {other.shape[1:]} of them")
    # every pair of runs is compared once; a draw weighs the pairs by how often it has drawn either run
    won = _won(one, other)
    chosen = bootstrap(
        [np.eye(len(one)), np.eye(len(other))],
        lambda a, b: np.einsum("di,ij,dj->d", a.mean(axis=1), won, b.mean(axis=1), optimize=True),
        seed=seed,
        draws=draws,
    )
    return Interval(value=won.mean(), low=chosen.low, high=chosen.high)


def _won(one: Array, other: Array) -> Array:
    """For each pair of runs, the share of columns at which the first is higher; equal ones count half."""
    x, y = one.reshape(len(one), 1, -1), other.reshape(1, len(other), -1)
    return np.asarray(((x > y) + 0.5 * (x == y)).mean(axis=-1))


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How many were right of those scored."""

    right: int
    scored: int

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.scored or self.scored < 1:
            raise UsageError(f"expected 0 <= right <= scored and one scored; got {self.right} of {self.scored}")

    def interval(self, *, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The Clopper-Pearson interval of the accuracy. Needs scipy."""
        from scipy.stats import beta

        tail, wrong = (1 - confidence) / 2, self.scored - self.right
        low = float(beta.ppf(tail, self.right, wrong + 1)) if self.right else 0.0
        high = float(beta.ppf(1 - tail, self.right + 1, wrong)) if wrong else 1.0
        return low, high

    def exceeds(self, ceiling: float, *, confidence: float = CONFIDENCE) -> bool:
        """Whether the whole interval lies above the ceiling."""
        return self.interval(confidence=confidence)[0] > ceiling


def _scores(given: ArrayLike) -> Array:
    array: NDArray[Any] = np.asarray(given, dtype=np.float64)
    if array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
        raise UsageError(f"expected at least one run with finite scores; got {array.tolist()}")
    return array
