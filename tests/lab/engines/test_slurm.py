"""Slurm through submitit, in the mode that needs no cluster."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from orderproof.errors import StoreError
from orderproof.forked_process import descendants
from orderproof.lab.engines.slurm import SlurmEngine
from orderproof.lab.result import RunResult
from tests.lab.small_study import reproducible_part, tiny_study, wait_until


@pytest.mark.slow
def test_a_killed_job_is_submitted_again_with_the_same_result(
    tmp_path: Path, undisturbed: dict[str, RunResult]
) -> None:
    runs = tiny_study().runs()[1:3]
    checkpoints = tmp_path / "checkpoints"
    killed: list[int] = []

    def kill() -> None:
        # Not when a checkpoint is there: a short run removes it before a busy machine looks.
        jobs = wait_until(lambda: [pid for pid in descendants(os.getpid()) if b"submitit.core._submit" in _line(pid)])
        killed.append(jobs[0])
        os.kill(jobs[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = {result.id: result for result in SlurmEngine(None, 2).run(runs, checkpoints)}
    killer.join()
    assert killed
    assert all(isinstance(result, RunResult) for result in found.values()), found
    assert {name: reproducible_part(result) for name, result in found.items()} == {
        run.id: reproducible_part(undisturbed[run.id]) for run in runs
    }  # type: ignore[arg-type]
    assert not list((tmp_path / "jobs").iterdir())
    assert not [pid for pid in descendants(os.getpid()) if b"submitit" in _line(pid)]


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write in '.*jobs': .*; pass another --store"):
        next(iter(SlurmEngine(None, 1).run(tiny_study().runs(), tmp_path / "checkpoints")))


def test_the_parameters_of_slurm_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    executor = SlurmEngine("short", 3)._executor(tmp_path)
    assert executor.cluster == "slurm"
    parameters = executor._executor.parameters
    assert (
        parameters["partition"],
        parameters["array_parallelism"],
        parameters["cpus_per_task"],
        parameters["time"],
    ) == (
        "short",
        3,
        1,
        60,
    )
    assert SlurmEngine(None, None).workers is None
    assert executor._executor.max_num_timeout > 100
