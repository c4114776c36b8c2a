"""Slurm, through submitit: runs as the jobs of an array; where there is no `srun`, as processes of this machine.

A job that its cluster ends early (its hour is over, something else goes first) is queued again and goes on from its
checkpoint: the folder of the store must be one that the nodes share. A job that died is sent again.
Source: submitit, https://github.com/facebookincubator/submitit.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import FailedJobError, UncompletedJobError
from submitit.helpers import Checkpointable

from orderproof.errors import StoreError
from orderproof.lab.configuration import RunConfig
from orderproof.lab.engines.engine import ATTEMPTS, Engine, Failure, Told, compute, died, read, text_of

MINUTES = 60  # of a job, after which it is queued again
TIMES = 1000  # that it may be
TOGETHER = 1000  # jobs of one array, the most that Slurm takes unless told otherwise


class Slurm(Engine):
    """Jobs of Slurm."""

    def __init__(self, partition: str | None, workers: int | None) -> None:
        self.partition = partition
        self.here = shutil.which("srun") is None
        self.workers = workers or (os.cpu_count() if self.here else None)

    def compute(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[Told]:
        folder = _folder(checkpoints.parent / "jobs")
        executor = self._executor(folder)
        # An array holds its jobs back by itself; processes of this machine would all start at once.
        room = (self.workers or 1) if self.here else TOGETHER
        waiting, deaths = list(runs), Counter[str]()
        under_way: dict[Any, RunConfig] = {}
        task = _Task()  # type: ignore[no-untyped-call]
        try:
            while waiting or under_way:
                sent, waiting = waiting[: room - len(under_way)], waiting[room - len(under_way) :]
                if sent:
                    texts = [text_of(run) for run in sent]
                    jobs = executor.map_array(task, texts, [str(checkpoints)] * len(sent))
                    under_way.update(zip(jobs, sent, strict=True))
                time.sleep(0.1 if self.here else 2)
                for job in [job for job in under_way if job.done()]:
                    run = under_way.pop(job)
                    told = _given(job, run.id)
                    if told is None:
                        deaths[run.id] += 1
                        if deaths[run.id] < ATTEMPTS:
                            waiting.append(run)
                            continue
                        told = died(run.id)
                    yield told
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            _cancel(list(under_way))

    def _executor(self, folder: Path) -> Any:
        executor = submitit.AutoExecutor(folder, cluster="local" if self.here else None, slurm_max_num_timeout=TIMES)
        executor.update_parameters(name="orderproof", timeout_min=MINUTES, cpus_per_task=1)
        if self.partition is not None:
            executor.update_parameters(slurm_partition=self.partition)
        if self.workers is not None:
            executor.update_parameters(slurm_array_parallelism=self.workers)
        return executor


class _Task(Checkpointable):
    """`compute`, which submitit may queue again with the same arguments."""

    def __call__(self, text: str, checkpoints: str) -> str:
        return compute(text, checkpoints)


def _given(job: Any, name: str) -> Told | None:
    """What came of a job; None where it died."""
    try:
        return read(job.result(), name=name)
    except FailedJobError as error:  # `compute` raises nothing: it was not reached
        return Failure(id=name, reason=" ".join(str(error).split())[-300:])
    except UncompletedJobError:
        return None


def _folder(jobs: Path) -> Path:
    """A new folder for what submitit writes: it names files by numbers that come again."""
    try:
        jobs.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="study-", dir=jobs)).resolve()
    except OSError as error:
        raise StoreError(f"cannot write in {str(jobs)!r}: {error.strerror}; give another --store") from error


def _cancel(jobs: list[Any]) -> None:
    """End what is under way, and see it ended."""
    for job in jobs:
        job.cancel()
    while not all(job.done() for job in jobs):
        time.sleep(0.1)
