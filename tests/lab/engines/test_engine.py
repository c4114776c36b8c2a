"""Engines and workers exchange text, never exceptions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orderproof.errors import StoreError, UsageError
from orderproof.lab import trainer
from orderproof.lab.engines.engine import RunFailure, RunOutcome, jobs, parse_outcomes, run_job, serialise_job
from orderproof.lab.engines.factory import engine_modules, make_engine
from orderproof.lab.engines.local import LocalEngine
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from tests.lab.small_study import reproducible_part, tiny_run, tiny_study


def executed(run: RunConfig, folder: Path) -> RunOutcome:
    """The outcome of a job of one run."""
    (outcome,) = parse_outcomes(run_job(serialise_job((run,)), str(folder)), (run,))
    return outcome


def test_a_result_is_unchanged_by_serialisation(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    run = tiny_study().runs()[3]
    outcome = executed(run, tmp_path)
    assert isinstance(outcome, RunResult)
    assert reproducible_part(outcome) == reproducible_part(undisturbed[run.id])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UsageError("plain words"), "plain words"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_an_error_in_a_run_is_a_failure_in_one_line(
    error: Exception, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "train", _train_that_raises(error))
    run = tiny_run()
    assert executed(run, tmp_path) == RunFailure(id=run.id, reason=reason)


def test_a_store_error_ends_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "train", _train_that_raises(StoreError("the disk is full")))
    run = tiny_run()
    with pytest.raises(StoreError, match="the disk is full"):
        executed(run, tmp_path)


def test_divergence_is_a_failure(tmp_path: Path) -> None:
    run = tiny_run(learning_rate=1e30, clip=None, steps=20, measure_every=5)
    outcome = executed(run, tmp_path)
    assert isinstance(outcome, RunFailure)
    assert outcome.reason.startswith("training diverged: ")


def test_the_serialised_run_is_the_whole_configuration() -> None:
    run = tiny_study().runs()[1]
    assert json.loads(serialise_job((run,))) == [run.to_dict()]


def test_the_runs_of_a_batch_are_one_job() -> None:
    runs = [tiny_run(seed=seed, batched=True) for seed in (0, 1)]
    other = tiny_run(batched=True, encoding="rotary")
    alone = [tiny_run(seed=seed) for seed in (0, 1)]
    assert jobs([*runs, other, *alone]) == [(runs[0], runs[1]), (other,), (alone[0],), (alone[1],)]


def test_a_batch_returns_the_result_of_each_of_its_runs(tmp_path: Path) -> None:
    job = tuple(tiny_run(seed=seed, batched=True, steps=4, measure_every=2) for seed in (0, 1))
    found = parse_outcomes(run_job(serialise_job(job), str(tmp_path)), job)
    assert [outcome.id for outcome in found] == [run.id for run in job]
    assert all(isinstance(outcome, RunResult) for outcome in found)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in ("ray", "slurm") else ()) for name in engine_modules()],
)
def test_every_engine_yields_the_outcome_of_each_run(
    name: str, tmp_path: Path, undisturbed: dict[str, RunResult]
) -> None:
    for package in {"ray": ["ray"], "slurm": ["submitit"]}.get(name, []):
        pytest.importorskip(package)
    runs = tiny_study().runs()[:2]
    found = {outcome.id: outcome for outcome in make_engine(name, workers=1).run(runs, tmp_path / "checkpoints")}
    assert found.keys() == {run.id for run in runs}
    for run in runs:
        outcome = found[run.id]
        assert isinstance(outcome, RunResult), outcome
        assert reproducible_part(outcome) == reproducible_part(undisturbed[run.id])


def test_an_engine_is_chosen_by_name() -> None:
    chosen = make_engine("local", workers=3)
    assert isinstance(chosen, LocalEngine)
    assert chosen.workers == 3
    for name in ("cloud", "cloud:here", ""):
        with pytest.raises(UsageError, match="expected --engine, one of local, ray, slurm; got"):
            make_engine(name, workers=None)
    with pytest.raises(UsageError, match="expected --engine local, which has no target; got 'local:here'"):
        make_engine("local:here", workers=None)


@pytest.mark.parametrize(("kind", "module", "package"), [("ray", "ray_engine", "ray"), ("slurm", "slurm", "submitit")])
def test_a_missing_package_is_named(kind: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, f"orderproof.lab.engines.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=rf"--engine {kind} needs the package {package}: pip install .*\[{kind}\]"):
        make_engine(kind, workers=None)


def _train_that_raises(error: Exception):  # type: ignore[no-untyped-def]
    def train(run: object, folder: object) -> None:
        raise error

    return train
