"""The process pool: the same results, and none lost with a worker."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from orderproof.lab.engines import local
from orderproof.lab.engines.engine import ATTEMPTS, Failure
from orderproof.lab.engines.local import Local
from orderproof.lab.result import RunResult
from tests.lab.running import ended, one, tiny, told


def test_a_killed_worker_costs_no_result_and_changes_none(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    found, killed = {}, []
    with closing(Local(2).compute(tiny().runs()[:3], tmp_path)) as results:  # type: ignore[type-var]
        for result in results:
            assert isinstance(result, RunResult)
            found[result.id] = told(result)
            if not killed:
                killed = [multiprocessing.active_children()[0].pid]
                os.kill(killed[0], signal.SIGKILL)
    assert killed
    assert found == {run.id: told(undisturbed[run.id]) for run in tiny().runs()[:3]}


def test_closing_the_results_ends_the_workers(tmp_path: Path) -> None:
    results = Local(1).compute([one(steps=30), one(steps=100_000)], tmp_path)
    next(results)
    workers = [child.pid for child in multiprocessing.active_children()]
    results.close()  # type: ignore[attr-defined]
    assert workers
    assert all(ended(worker) for worker in workers)


class _Pools:
    """In place of the pool: some runs kill whatever computes them."""

    def __init__(self, deadly: set[str]) -> None:
        self.deadly = deadly
        self.sent: list[list[str]] = []

    def __call__(self, workers, waiting, checkpoints, lost):  # type: ignore[no-untyped-def]
        waiting = list(waiting)
        while waiting:
            together, waiting = waiting[:workers], waiting[workers:]
            self.sent.append([run.id for run in together])
            if self.deadly & {run.id for run in together}:
                lost.extend(run.id for run in together)
                return
            for run in together:
                yield Failure(id=run.id, reason="told")


def test_only_the_run_that_kills_its_worker_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tiny().runs()
    pools = _Pools({runs[1].id})
    monkeypatch.setattr(local, "_in_a_pool", pools)
    came = {each.id: each.reason for each in Local(2).compute(runs, tmp_path)}
    assert list(came) == [runs[0].id, runs[1].id, runs[2].id, runs[3].id]
    assert came.pop(runs[1].id) == f"its worker died {ATTEMPTS} times (out of memory?)"
    assert set(came.values()) == {"told"}
    alone = [sent for sent in pools.sent if sent == [runs[1].id]]
    assert len(alone) == ATTEMPTS
