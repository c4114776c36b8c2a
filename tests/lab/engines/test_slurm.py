"""Slurm through submitit, in the mode that needs no cluster."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from orderproof.errors import StoreError
from orderproof.lab.engines.slurm import Slurm
from orderproof.lab.result import RunResult
from tests.lab.running import descendants, tiny, told, until


def test_a_killed_job_is_sent_again_and_the_results_are_the_same(
    tmp_path: Path, undisturbed: dict[str, RunResult]
) -> None:
    runs = tiny().runs()[1:3]
    checkpoints = tmp_path / "checkpoints"
    killed: list[int] = []

    def kill() -> None:
        until(lambda: list(checkpoints.glob("*.safetensors")))
        killed.extend(pid for pid in descendants(os.getpid()) if b"submitit.core._submit" in _line(pid))
        for pid in killed[:1]:
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = {result.id: result for result in Slurm(None, 2).compute(runs, checkpoints)}
    killer.join()
    assert killed
    assert all(isinstance(result, RunResult) for result in found.values()), found
    assert {name: told(result) for name, result in found.items()} == {run.id: told(undisturbed[run.id]) for run in runs}  # type: ignore[arg-type]
    assert not list((tmp_path / "jobs").iterdir())
    assert not [pid for pid in descendants(os.getpid()) if b"submitit" in _line(pid)]


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write in '.*jobs': .*; give another --store"):
        next(iter(Slurm(None, 1).compute(tiny().runs(), tmp_path / "checkpoints")))


def test_what_slurm_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    executor = Slurm("short", 3)._executor(tmp_path)
    assert executor.cluster == "slurm"
    asked = executor._executor.parameters
    assert (asked["partition"], asked["array_parallelism"], asked["cpus_per_task"], asked["time"]) == (
        "short",
        3,
        1,
        60,
    )
    assert Slurm(None, None).workers is None
    assert executor._executor.max_num_timeout > 100
