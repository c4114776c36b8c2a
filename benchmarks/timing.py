"""Processor time of candidates that run in turn in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

Candidate = Callable[[], object]


def seconds_by_round(candidates: dict[str, Candidate], *, rounds: int, calls: int = 1) -> dict[str, list[float]]:
    """The time of one call of each candidate [s] in each round, after one call that is not counted."""
    for run in candidates.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            start = time.process_time()
            for _ in range(calls):
                run()
            seconds[name].append((time.process_time() - start) / calls)
    return seconds


def ratios(
    candidates: dict[str, Candidate], *, base: str, rounds: int, calls: int = 1
) -> tuple[float, dict[str, float]]:
    """The time of one call of the base [s], and the ratio of each candidate to it; medians over rounds."""
    seconds = seconds_by_round(candidates, rounds=rounds, calls=calls)
    found = {
        name: statistics.median(s / b for s, b in zip(taken, seconds[base], strict=True))
        for name, taken in seconds.items()
    }
    return statistics.median(seconds[base]), found
