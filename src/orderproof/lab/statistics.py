"""Statistics of a few runs: estimates over seeds, and the comparison of an accuracy with a ceiling.

*Interquartile mean.* Of n sorted scores s_1 <= ... <= s_n, the floor(n/4) lowest and highest are dropped:

    IQM = mean(s_(k+1), ..., s_(n-k)),        k = floor(n / 4)

It is more robust to one failed seed than the mean; with 3 seeds or fewer it is the mean.

*Stratified bootstrap.* The runs of each stratum are resampled with replacement and the statistic is recomputed; the
2.5% and 97.5% quantiles over many resamples are the interval. In the source a stratum is a task, whose runs are
independent of those of other tasks. Here one run is scored at every length, so a run is resampled with all its scores,
and the strata are the configurations. A percentile interval over few runs is too narrow: it cannot extend beyond the
best and the worst run.

*Probability of improvement.* The probability that a run of X scores better than a run of Y, averaged over m tasks (here
lengths):

    P(X > Y) = 1/m sum_t 1/(N M) sum_(i,j) S(x_(t,i), y_(t,j)),      S = 1 if x > y,  1/2 if x = y,  0 if x < y

Source: Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice", arXiv:2108.13264,
sections 4.1 to 4.3.

*Clopper-Pearson interval.* With x right of n independent trials, the accuracies p that neither one-sided test at level
a/2 rejects. With B(q; a, b) the q-quantile of the beta distribution:

    low = B(a/2; x, n - x + 1)  (0 if x = 0),        high = B(1 - a/2; x + 1, n - x)  (1 if x = n)

Its coverage is at least the nominal one. Several positions of one row are not independent trials, nor are the same rows
for several seeds: it applies to one run.
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
    """A statistic with an interval: scalars, or one entry per column of the scores."""

    value: Array
    low: Array
    high: Array


def interquartile_mean(scores: ArrayLike, *, axis: int = 0) -> Array:
    """The mean of the middle half along an axis. Raises `UsageError` without scores."""
    sorted_scores = np.sort(_finite_scores(scores), axis=axis)
    runs = sorted_scores.shape[axis]
    dropped = runs // 4
    return np.asarray(np.take(sorted_scores, range(dropped, runs - dropped), axis=axis).mean(axis=axis))


def bootstrap(
    strata: Sequence[ArrayLike],
    statistic: Callable[..., Array],
    *,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Interval:
    """The statistic of the strata with its stratified bootstrap interval.

    Each stratum has one run per row. The statistic is called with the resampled strata, ``[draw, run, ...]``, and
    returns ``[draw, ...]``. Raises `UsageError` if a stratum is empty or not finite.
    """
    arrays = [_finite_scores(stratum) for stratum in strata]
    generator = np.random.default_rng(seed)
    resampled = [runs[generator.integers(len(runs), size=(draws, len(runs)))] for runs in arrays]
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(*resampled), (tail, 1 - tail), axis=0)
    return Interval(value=statistic(*(runs[None] for runs in arrays))[0], low=low, high=high)


def interquartile_interval(scores: ArrayLike, *, seed: int = 0, draws: int = DRAWS) -> Interval:
    """The interquartile mean of each column over the runs (rows), with its bootstrap interval."""
    return bootstrap([scores], lambda runs: interquartile_mean(runs, axis=1), seed=seed, draws=draws)


def probability_of_improvement(first: ArrayLike, second: ArrayLike, *, seed: int = 0, draws: int = DRAWS) -> Interval:
    """The probability that a run of the first scores higher than a run of the second, averaged over the columns.

    Raises `UsageError` if they have different columns.
    """
    x, y = _finite_scores(first), _finite_scores(second)
    if x.shape[1:] != y.shape[1:]:
        raise UsageError(f"expected scores at the same lengths; got {x.shape[1:]} and {y.shape[1:]} of them")
    # each pair of runs is compared once; a resample weights the pairs by the counts of both runs
    win_rates = _win_rates(x, y)
    interval = bootstrap(
        [np.eye(len(x)), np.eye(len(y))],
        lambda a, b: np.einsum("di,ij,dj->d", a.mean(axis=1), win_rates, b.mean(axis=1), optimize=True),
        seed=seed,
        draws=draws,
    )
    return Interval(value=win_rates.mean(), low=interval.low, high=interval.high)


def _win_rates(first: Array, second: Array) -> Array:
    """For each pair of runs, the share of columns in which the first is higher; ties count half."""
    x, y = first.reshape(len(first), 1, -1), second.reshape(1, len(second), -1)
    return np.asarray(((x > y) + 0.5 * (x == y)).mean(axis=-1))


@dataclass(frozen=True, kw_only=True)
class BinomialAccuracy:
    """The right answers among those scored, as a binomial count."""

    right: int
    scored: int

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.scored or self.scored < 1:
            raise UsageError(f"expected 0 <= right <= scored and scored >= 1; got {self.right} of {self.scored}")

    def interval(self, *, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The Clopper-Pearson interval of the accuracy. Needs scipy."""
        from scipy.stats import beta

        tail, wrong = (1 - confidence) / 2, self.scored - self.right
        low = float(beta.ppf(tail, self.right, wrong + 1)) if self.right else 0.0
        high = float(beta.ppf(1 - tail, self.right + 1, wrong)) if wrong else 1.0
        return low, high

    def exceeds(self, ceiling: float, *, confidence: float = CONFIDENCE) -> bool:
        """True if the whole interval is above the ceiling."""
        return self.interval(confidence=confidence)[0] > ceiling


def _finite_scores(scores: ArrayLike) -> Array:
    array: NDArray[Any] = np.asarray(scores, dtype=np.float64)
    if array.ndim == 0 or array.size == 0 or not np.isfinite(array).all():
        raise UsageError(f"expected at least one run with finite scores; got {array.tolist()}")
    return array
