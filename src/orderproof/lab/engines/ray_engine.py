"""Ray: runs as tasks with one CPU each, on a cluster or on a local instance that ends with the study.

If a worker or a node dies, Ray submits its task again. The run resumes from its checkpoint if the nodes share the
folder, and starts again if they do not; the result is the same. The nodes need the same version of orderproof. Usage
statistics and the dashboard are disabled.
Source: Moritz et al. 2018, "Ray: A Distributed Framework for Emerging AI Applications", OSDI, arXiv:1712.05889.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from orderproof.errors import UsageError
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

USAGE_HINT = "expected --engine ray:HOST:PORT, ray:auto or ray"
PACKAGE_FOLDER = Path(__file__).parents[3]  # on the PYTHONPATH of local workers


class RayEngine(Engine):
    """Tasks of a Ray cluster; without an address, of a new local instance."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        self.address = address
        self.workers = workers

    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        connects = not ray.is_initialized()
        if connects:
            self._connect()
        running: dict[Any, Job] = {}
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
            if connects:
                ray.shutdown()

    def _connect(self) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        settings: dict[str, Any] = {} if self.address else {"num_cpus": self.workers, "include_dashboard": False}
        path = os.pathsep.join([str(PACKAGE_FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
        if self.address not in (None, "auto"):
            _check_reachable(self.address)
        try:
            ray.init(
                address=self.address or "local",
                logging_level=logging.ERROR,
                log_to_driver=False,
                runtime_env={"env_vars": {"PYTHONPATH": path}},
                **settings,
            )
        except (ConnectionError, RuntimeError, ValueError, SystemExit) as error:
            cause = " ".join(str(error).split())[:200]
            action = f"connect to the Ray cluster at {self.address}" if self.address else "start a local Ray instance"
            raise UsageError(f"cannot {action}: {cause}; {USAGE_HINT}") from error


def _check_reachable(address: str) -> None:
    """Raise `UsageError` if no server listens there: Ray would retry for minutes and then end the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"{address!r} is not the address of a Ray cluster; {USAGE_HINT}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        cause = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot connect to the Ray cluster at {address}: {cause}; {USAGE_HINT}") from error


def _outcomes(reference: Any, job: Job) -> list[RunOutcome]:
    try:
        return parse_outcomes(ray.get(reference), job)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError):
        return worker_died(job)
    except ray.exceptions.RayError as error:
        return failures(job, " ".join(str(error).split())[-300:])


ENGINE = RayEngine
