"""The difference between an engine and its reference, token by token.

    difference_t = max |E(x)_t - f(x)_t| / max |f(x)|

f is the reference in float64. The yardstick is the difference between the reference in float32 and in float64, on the
same tokens: a port that differs by more than `PORT_FACTOR` times that differs by more than rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orderproof.ports.engines.engine import EngineError, Scores
from orderproof.ports.reference import Logits
from orderproof.tolerances import PORT_FACTOR, PORT_LEAST_ROUNDING

MAX_EXCESS = 1e-3  # by which probabilities may exceed 1 in sum
MAX_DIGITS = 5  # decimals; more are as good as none missing
MAX_ERROR = 0.05  # of a value in units of its last decimal: a larger one hides that it is rounded


class NotFiniteError(EngineError):
    """A score that is no number, or infinite, where those of the reference are finite."""


@dataclass(frozen=True)
class Profile:
    """The differences of the tokens that are compared."""

    by_token: tuple[float, ...]  # the largest over the rows, by the index of the token in its row
    tolerance: float
    start: int = 0  # the first token that is compared
    place: tuple[int, int, int] = (0, 0, 0)  # row, token and vocabulary entry of the largest difference
    expected: float = 0.0  # the value of the reference there
    actual: float = 0.0

    @property
    def compared(self) -> tuple[float, ...]:
        """The differences of the compared tokens."""
        return self.by_token[self.start :]

    @property
    def largest(self) -> float:
        """The largest difference of the compared tokens."""
        return max(self.compared, default=0.0)

    @property
    def first(self) -> int | None:
        """The first token, compared or not, that differs; None if all compared tokens are equal."""
        if self.largest <= self.tolerance:
            return None
        return next(index for index, value in enumerate(self.by_token) if value > self.tolerance)

    @property
    def share(self) -> float:
        """The share of the compared tokens that differ."""
        return sum(value > self.tolerance for value in self.compared) / max(1, len(self.compared))

    def growth(self) -> tuple[tuple[int, float], ...]:
        """The largest difference of the tokens up to 1, 2, 4, 8, ... tokens: (tokens, difference)."""
        count, steps = len(self.by_token), []
        size = 1
        while size < count:
            steps.append(size)
            size *= 2
        return tuple((each, max(self.by_token[:each])) for each in [*steps, count])


@dataclass(frozen=True)
class Resolution:
    """How precisely an engine reports its scores: nothing is known of the rest."""

    notes: tuple[str, ...] = ()  # what is not compared, one line each
    step: float = 0.0  # the distance between neighbouring values


def resolution(scores: Sequence[Scores], vocabulary: int) -> Resolution:
    """The resolution of scores: of some candidates only, or rounded. Raises `EngineError` for impossible ones."""
    notes, step = [], 0.0
    candidates = [each.candidates for each in scores if each.candidates is not None]
    if candidates and candidates[0].shape[1] < vocabulary:
        count = max(each.shape[1] for each in candidates)
        notes.append(
            f"it returns {count} of {vocabulary:,} log-probabilities for each token; the others are not compared"
        )
    hidden = [int((each.candidates < 0).all(-1).sum()) for each in scores if each.candidates is not None]
    if any(hidden):
        count = sum(len(each.values) for each in scores)
        notes.append(f"it was asked for {count - sum(hidden)} of {count:,} tokens; the others are not compared")
    for each in scores:
        if each.normalised:
            known = np.ones_like(each.values, bool) if each.candidates is None else each.candidates >= 0
            total = float(np.where(known, np.exp(each.values.astype(np.float64)), 0.0).sum(-1).max())
            if total > 1 + MAX_EXCESS:
                raise EngineError(f"its probabilities of one token sum to {total:.3g}: they are no log-probabilities")
    digits = _decimals(np.concatenate([each.values.astype(np.float32).ravel() for each in scores]))
    if digits is not None:
        step = 10.0**-digits
        notes.append(f"its scores are rounded to {digits} decimals: smaller differences are not seen")
    return Resolution(tuple(notes), step)


def _decimals(values: NDArray[np.float32]) -> int | None:
    """The number of decimals that values are rounded to; None if they have as many as float32 has."""
    exact, spacing = values.astype(np.float64), np.spacing(np.abs(values)).astype(np.float64)
    for digits in range(MAX_DIGITS) if np.any(values) else ():
        scaled, error = exact * 10.0**digits, spacing * 10.0**digits
        if error.max() > MAX_ERROR:  # float32 has fewer decimals
            return None
        if np.all(np.abs(scaled - scaled.round()) <= error):
            return digits
    return None


def profile(actual: Sequence[Scores], expected: Sequence[Logits], tolerance: float, *, start: int = 0) -> Profile:
    """The differences between the outputs of an engine and those of a reference. Raises `EngineError`."""
    check_scores(actual, expected)
    length = max(len(each) for each in expected)
    by_token = np.zeros(length)
    best: tuple[float, tuple[int, int, int], float, float] = (-1.0, (0, 0, 0), 0.0, 0.0)
    scale = max(float(np.abs(each).max()) for each in expected)
    for row, (scores, logits) in enumerate(zip(actual, expected, strict=True)):
        values, wanted = comparable(scores, logits)
        gap = np.abs(values - wanted) / scale
        by_token[: len(gap)] = np.maximum(by_token[: len(gap)], gap.max(-1))
        if len(gap) > start:
            token, entry = np.unravel_index(int(gap[start:].argmax()), gap[start:].shape)
            place = (row, int(token) + start, int(entry))
            size = float(gap[place[1], place[2]])
            if size > best[0]:
                best = (size, place, float(wanted[place[1], place[2]]), float(values[place[1], place[2]]))
    return Profile(tuple(map(float, by_token)), tolerance, start, *best[1:])


def comparable(scores: Scores, logits: Logits) -> tuple[Logits, Logits]:
    """The values of an engine and of the reference in one form: the same candidates, both normalised or neither."""
    values: Logits = scores.values.astype(np.float64)
    wanted = log_softmax(logits) if scores.normalised and not scores.among_candidates else logits
    if scores.candidates is not None:
        wanted = np.take_along_axis(wanted, np.maximum(scores.candidates, 0), axis=-1)
        if scores.among_candidates:
            wanted = log_softmax(np.where(scores.candidates >= 0, wanted, -np.inf))
        wanted = np.where(scores.candidates >= 0, wanted, 0.0)
        values = np.where(scores.candidates >= 0, values, 0.0)
    return values, wanted


def log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-probabilities along the last axis."""
    shifted = logits - logits.max(-1, keepdims=True)
    normalised: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return normalised


def check_scores(actual: Sequence[Scores], expected: Sequence[Logits]) -> None:
    """Raise `EngineError` for another number of rows or tokens, another vocabulary, or values that are not finite."""
    if len(actual) != len(expected):
        raise EngineError(f"it returned {len(actual)} rows; expected {len(expected)}")
    for row, (scores, logits) in enumerate(zip(actual, expected, strict=True)):
        values, candidates = scores.values, scores.candidates
        if values.ndim != 2 or len(values) != len(logits):
            raise EngineError(f"it returned scores of shape {list(values.shape)} for {len(logits)} tokens")
        if candidates is None and values.shape != logits.shape:
            raise EngineError(
                f"it returned {values.shape[1]:,} numbers for each token; the reference has {logits.shape[1]:,}: "
                "give it the same checkpoint, or the same sizes"
            )
        if candidates is not None and (candidates.shape != values.shape or candidates.max() >= logits.shape[1]):
            raise EngineError(
                "it returned token ids outside the vocabulary of the reference: serve the same checkpoint"
            )
        if not np.isfinite(values).all():
            token = int(np.argwhere(~np.isfinite(values))[0, 0])
            said = f"it returned a value that is not finite, first at token {token} of row {row}"
            raise (
                NotFiniteError(said) if np.isfinite(logits).all() else EngineError(f"{said}, and so did the reference")
            )


def rounding(single: Sequence[Logits], double: Sequence[Logits]) -> float:
    """The relative difference between the reference in float32 and in float64."""
    scale = max(float(np.abs(each).max()) for each in double)
    gap = max(float(np.abs(a - b).max()) for a, b in zip(single, double, strict=True))
    return max(gap / scale, PORT_LEAST_ROUNDING)


def tolerance(single: Sequence[Logits], double: Sequence[Logits]) -> float:
    """The largest difference that is attributed to rounding."""
    return PORT_FACTOR * rounding(single, double)
