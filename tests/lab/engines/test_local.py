"""Local processes: the death of one loses no result and changes none."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from orderproof.lab.engines import local
from orderproof.lab.engines.engine import FAILED, MAX_ATTEMPTS
from orderproof.lab.engines.local import LocalEngine
from orderproof.lab.result import RunResult
from orderproof.lab.run_config import RunConfig
from tests.lab.small_study import has_ended, reproducible_part, tiny_run, tiny_study


def test_a_killed_worker_loses_and_changes_no_result(tmp_path: Path, undisturbed: dict[str, RunResult]) -> None:
    found, killed = {}, []
    with closing(LocalEngine(2).run(tiny_study().runs()[:5], tmp_path)) as results:  # type: ignore[type-var]
        for result in results:
            assert isinstance(result, RunResult)
            found[result.id] = reproducible_part(result)
            if not killed and (workers := multiprocessing.active_children()):  # the others may have ended by now
                killed = [workers[0].pid]
                os.kill(killed[0], signal.SIGKILL)
    assert killed
    assert found == {run.id: reproducible_part(undisturbed[run.id]) for run in tiny_study().runs()[:5]}


def test_closing_the_results_ends_the_workers(tmp_path: Path) -> None:
    results = LocalEngine(2).run([tiny_run(steps=30), tiny_run(steps=100_000)], tmp_path)
    next(results)
    workers = [child.pid for child in multiprocessing.active_children()]
    results.close()  # type: ignore[attr-defined]
    assert workers
    assert all(has_ended(worker) for worker in workers)


def execute_or_die(sender: Connection, text: str, checkpoints: str) -> None:
    """Replaces the work of a process: that of the second run is killed at each attempt."""
    (run,) = map(RunConfig.model_validate, json.loads(text))
    with Path(checkpoints, run.id).open("a") as attempts:
        attempts.write("x")
    if run.id == tiny_study().runs()[1].id:
        os.kill(os.getpid(), signal.SIGKILL)
    sender.send(json.dumps({FAILED: "executed"}))


@pytest.mark.parametrize("workers", [1, 2])
def test_only_the_run_that_kills_its_process_is_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    runs = tiny_study().runs()
    monkeypatch.setattr(local, "_work", execute_or_die)
    reasons = {each.id: each.reason for each in LocalEngine(workers).run(runs, tmp_path)}  # type: ignore[union-attr]
    assert set(reasons) == {run.id for run in runs}
    assert reasons.pop(runs[1].id) == f"its worker died {MAX_ATTEMPTS} times (out of memory?)"
    assert set(reasons.values()) == {"executed"}
    attempts = {run.id: len((tmp_path / run.id).read_text()) for run in runs}
    assert attempts == {run.id: MAX_ATTEMPTS if run.id == runs[1].id else 1 for run in runs}
