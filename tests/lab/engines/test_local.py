"""The process pool: the death of a worker loses no result and changes none."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from orderproof.lab.engines import local
from orderproof.lab.engines.engine import MAX_ATTEMPTS, RunFailure
from orderproof.lab.engines.local import LocalEngine
from orderproof.lab.result import RunResult
from tests.lab.small_study import has_ended, reproducible_part, tiny_run, tiny_study


def test_a_killed_worker_loses_and_changes_no_result(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    found, killed = {}, []
    with closing(LocalEngine(2).run(tiny_study().runs()[:3], tmp_path)) as results:  # type: ignore[type-var]
        for result in results:
            assert isinstance(result, RunResult)
            found[result.id] = reproducible_part(result)
            if not killed:
                killed = [multiprocessing.active_children()[0].pid]
                os.kill(killed[0], signal.SIGKILL)
    assert killed
    assert found == {run.id: reproducible_part(undisturbed[run.id]) for run in tiny_study().runs()[:3]}


def test_closing_the_results_ends_the_workers(tmp_path: Path) -> None:
    results = LocalEngine(1).run([tiny_run(steps=30), tiny_run(steps=100_000)], tmp_path)
    next(results)
    workers = [child.pid for child in multiprocessing.active_children()]
    results.close()  # type: ignore[attr-defined]
    assert workers
    assert all(has_ended(worker) for worker in workers)


class _FakePool:
    """Replaces the pool: the workers of some runs die."""

    def __init__(self, deadly: set[str]) -> None:
        self.deadly = deadly
        self.batches: list[list[str]] = []

    def __call__(self, workers, waiting, checkpoints, interrupted):  # type: ignore[no-untyped-def]
        waiting = list(waiting)
        while waiting:
            together, waiting = waiting[:workers], waiting[workers:]
            self.batches.append([run.id for run in together])
            if self.deadly & {run.id for run in together}:
                interrupted.extend(run.id for run in together)
                return
            for run in together:
                yield RunFailure(id=run.id, reason="executed")


def test_only_the_run_that_kills_its_worker_is_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tiny_study().runs()
    pool = _FakePool({runs[1].id})
    monkeypatch.setattr(local, "_run_pool", pool)
    reasons = {each.id: each.reason for each in LocalEngine(2).run(runs, tmp_path)}
    assert list(reasons) == [runs[0].id, runs[1].id, runs[2].id, runs[3].id]
    assert reasons.pop(runs[1].id) == f"its worker died {MAX_ATTEMPTS} times (out of memory?)"
    assert set(reasons.values()) == {"executed"}
    alone = [batch for batch in pool.batches if batch == [runs[1].id]]
    assert len(alone) == MAX_ATTEMPTS
