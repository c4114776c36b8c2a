"""The learning rate of each cell: a small sweep before the study, on seeds and rows that the study does not use.

Every cell is trained with each learning rate and a few seeds, and scored on validation rows of the longest trained
length; no longer row is read. The rate with the most seeds that reach `RunConfig.solved` is chosen, then the one that
reaches it in the fewest steps, then the one with the best score. The scores of all rates are part of the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from orderproof.lab.trainer import is_solved
from orderproof.records.study import SweepPoint

FIRST_SEED = 1000
"""Of a sweep; the seeds of a study start at 0."""


def sweep_runs(cells: Iterable[RunConfig], rates: Iterable[float], *, seeds: int) -> list[RunConfig]:
    """The runs of a sweep for these cells, each run once."""
    runs: dict[str, RunConfig] = {}
    rates = list(rates)
    for cell in cells:
        for rate in rates:
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                settings = {"learning_rate": rate, "seed": seed, "stretch": None}
                tested = {"test_lengths": cell.effective_train_lengths[1:], "test_rows": 1}
                run = RunConfig.model_validate({**cell.to_dict(), **settings, **tested})
                runs[run.id] = run
    return list(runs.values())


def sweep_points(runs: Iterable[RunConfig], results: Mapping[str, RunResult]) -> dict[str, tuple[SweepPoint, ...]]:
    """For each `RunConfig.sweep_id`, the mean outcome of every learning rate, best first."""
    grouped: dict[str, dict[float, list[tuple[RunConfig, RunResult]]]] = {}
    for run in runs:
        grouped.setdefault(run.sweep_id, {}).setdefault(run.learning_rate, []).append((run, results[run.id]))
    points = {}
    for sweep_id, by_rate in grouped.items():
        sign = 1.0 if next(iter(by_rate.values()))[0][0].question.measure == "nats" else -1.0
        tried = [_point(rate, pairs) for rate, pairs in by_rate.items()]
        points[sweep_id] = tuple(sorted(tried, key=lambda point: (-point.solved, point.steps, sign * point.score)))
    return points


def _point(rate: float, pairs: list[tuple[RunConfig, RunResult]]) -> SweepPoint:
    return SweepPoint(
        learning_rate=rate,
        seeds=len(pairs),
        solved=sum(is_solved(run, [point.model_dump() for point in result.curve]) for run, result in pairs),
        steps=fmean(result.curve[-1].step for _, result in pairs),
        score=fmean(result.curve[-1].score for _, result in pairs),
    )
