"""Slurm through submitit: runs as jobs of an array, or without `srun`, as processes on this machine.

A job that the cluster ends early (time limit, preemption) is queued again and resumes from its checkpoint, so the nodes
must share the folder of the store. A job that dies is submitted again.
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
from orderproof.lab.engines.engine import (
    MAX_ATTEMPTS,
    Engine,
    Job,
    RunOutcome,
    failures,
    jobs,
    parse_outcomes,
    run_job,
    serialise_job,
    worker_died,
)
from orderproof.lab.run_config import RunConfig

JOB_MINUTES = 60  # time limit, after which a job is queued again
MAX_REQUEUES = 1000  # per job
MAX_ARRAY_SIZE = 1000  # the default limit of Slurm


class SlurmEngine(Engine):
    """Jobs of Slurm."""

    def __init__(self, partition: str | None, workers: int | None) -> None:
        self.partition = partition
        self.is_local = shutil.which("srun") is None
        self.workers = workers or (os.cpu_count() if self.is_local else None)

    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        folder = _folder(checkpoints.parent / "jobs")
        executor = self._executor(folder)
        # Slurm limits the concurrent jobs of an array; local processes would all start at once.
        slots = (self.workers or 1) if self.is_local else MAX_ARRAY_SIZE
        waiting, deaths = jobs(runs), Counter[str]()  # by the first run of a job
        running: dict[Any, Job] = {}
        job_function = _Job()  # type: ignore[no-untyped-call]
        try:
            while waiting or running:
                free = slots - len(running)
                submitted, waiting = waiting[:free], waiting[free:]
                if submitted:
                    texts = [serialise_job(job) for job in submitted]
                    handles = executor.map_array(job_function, texts, [str(checkpoints)] * len(submitted))
                    running.update(zip(handles, submitted, strict=True))
                time.sleep(0.1 if self.is_local else 2)
                for handle in [handle for handle in running if handle.done()]:
                    job = running.pop(handle)
                    outcomes = _outcomes(handle, job)
                    if outcomes is None:
                        deaths[job[0].id] += 1
                        if deaths[job[0].id] < MAX_ATTEMPTS:
                            waiting.append(job)
                            continue
                        outcomes = worker_died(job)
                    yield from outcomes
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            _cancel(list(running))

    def _executor(self, folder: Path) -> Any:
        executor = submitit.AutoExecutor(
            folder, cluster="local" if self.is_local else None, slurm_max_num_timeout=MAX_REQUEUES
        )
        executor.update_parameters(name="orderproof", timeout_min=JOB_MINUTES, cpus_per_task=1)
        if self.partition is not None:
            executor.update_parameters(slurm_partition=self.partition)
        if self.workers is not None:
            executor.update_parameters(slurm_array_parallelism=self.workers)
        return executor


class _Job(Checkpointable):
    """`run_job`, which submitit can queue again with the same arguments."""

    def __call__(self, text: str, checkpoints: str) -> str:
        return run_job(text, checkpoints)


def _outcomes(handle: Any, job: Job) -> list[RunOutcome] | None:
    """The outcomes of a job; None if it died."""
    try:
        return parse_outcomes(handle.result(), job)
    except FailedJobError as error:  # `run_job` raises no errors of a run, so the job failed before it
        return failures(job, " ".join(str(error).split())[-300:])
    except UncompletedJobError:
        return None


def _folder(jobs: Path) -> Path:
    """A new folder for the files of submitit, whose names are job numbers that can repeat."""
    try:
        jobs.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="study-", dir=jobs)).resolve()
    except OSError as error:
        raise StoreError(f"cannot write in {str(jobs)!r}: {error.strerror}; pass another --store") from error


def _cancel(jobs: list[Any]) -> None:
    """Cancel the jobs and wait until they have ended."""
    for job in jobs:
        job.cancel()
    while not all(job.done() for job in jobs):
        time.sleep(0.1)


ENGINE = SlurmEngine
