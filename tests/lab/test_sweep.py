"""The learning rate of a cell is chosen by its validation scores: solved seeds, then steps, then the score."""

from __future__ import annotations

from orderproof.lab.result import RunResult, TrainingPoint
from orderproof.lab.run_config import RunConfig
from orderproof.lab.study import parse_run
from orderproof.lab.sweep import sweep_points, sweep_runs


def result(run: RunConfig, *, scores: tuple[float, ...], every: int = 10) -> RunResult:
    curve = [TrainingPoint(step=every * (k + 1), loss=1.0, score=score) for k, score in enumerate(scores)]
    return RunResult(
        id=run.id, config=run.to_dict(), curve=curve, lengths=[], parameters=1, digest="", seconds=1.0,
        tokens_per_second=1.0,
    )  # fmt: skip


def order(question: str, outcomes: dict[float, tuple[float, ...]], *settings: str) -> list[float]:
    """The rates, best first, where every seed of a rate has the same scores."""
    runs = sweep_runs([parse_run(question, list(settings))], list(outcomes), seeds=2)
    results = {run.id: result(run, scores=outcomes[run.learning_rate]) for run in runs}
    (points,) = sweep_points(runs, results).values()
    assert {point.seeds for point in points} == {2}
    return [point.learning_rate for point in points]


def test_a_rate_that_solves_the_task_comes_first_then_the_fastest_then_the_best_score() -> None:
    outcomes = {0.1: (0.2, 0.98, 0.98), 0.01: (0.5, 0.99, 1.0), 0.02: (1.0, 1.0), 0.001: (0.1, 0.2, 0.3)}
    assert order("copy", outcomes, "solved=0.99", "schedule=constant") == [0.02, 0.01, 0.1, 0.001]


def test_one_high_score_is_not_solved() -> None:
    outcomes = {0.1: (0.2, 0.5, 1.0), 0.01: (0.0, 0.99, 0.99)}
    assert order("copy", outcomes, "solved=0.99", "schedule=constant") == [0.01, 0.1]


def test_a_lower_cross_entropy_is_better() -> None:
    assert order("extrapolate", {0.1: (0.7, 0.5), 0.01: (0.6, 0.4)}) == [0.01, 0.1]
