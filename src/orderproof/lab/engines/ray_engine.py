"""Ray: runs as tasks with one CPU each, on a cluster or on a local instance that ends with the study.

If a worker or a node dies, Ray submits its task again. The run resumes from its checkpoint if the nodes share the
folder, and starts again if they do not; the result is the same. The nodes need the same version of orderproof.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

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
from orderproof.ray_cluster import WORKER_DEATHS, connected


class RayEngine(Engine):
    """Tasks of a Ray cluster; without an address, of a new local instance."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        self.address = address
        self.workers = workers

    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        running: dict[Any, Job] = {}
        with connected(self.address, self.workers):
            try:
                # Retry after the death of a worker only: an error in a run returns as text, and would occur again.
                task = ray.remote(num_cpus=1, max_retries=MAX_ATTEMPTS - 1, retry_exceptions=False)(run_job)
                waiting = jobs(runs)
                while waiting or running:
                    while waiting and len(running) < (self.workers or len(runs)):
                        job = waiting.pop(0)
                        running[task.remote(serialise_job(job), str(checkpoints))] = job
                    (done,), _ = ray.wait(list(running), num_returns=1)
                    yield from _outcomes(done, running.pop(done))
            finally:
                for reference in running:
                    ray.cancel(reference, force=True)


def _outcomes(reference: Any, job: Job) -> list[RunOutcome]:
    try:
        return parse_outcomes(ray.get(reference), job)
    except WORKER_DEATHS:
        return worker_died(job)
    except ray.exceptions.RayError as error:
        return failures(job, " ".join(str(error).split())[-300:])


ENGINE = RayEngine
