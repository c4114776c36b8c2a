"""Ray: runs as tasks of one CPU each, on a cluster or on a local instance that ends with the study.

Ray sends a task again whose worker or node died. It goes on from its checkpoint where the nodes share the folder, and
from its start where they do not, to the same result. On the nodes orderproof must be installed in the same version.
Nothing is talked to but the cluster: no usage statistics, no dashboard.
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
from orderproof.lab.configuration import RunConfig
from orderproof.lab.engines.engine import ATTEMPTS, Engine, Failure, Told, compute, died, read, text_of

EXPECTED = "expected --engine ray:HOST:PORT, ray:auto or ray"
PACKAGES = Path(__file__).parents[3]  # where orderproof lies: a worker on this machine finds it there


class OnRay(Engine):
    """Tasks of Ray. Without an address: an instance of its own on this machine."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        self.address = address
        self.workers = workers

    def compute(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[Told]:
        ours = not ray.is_initialized()
        if ours:
            self._connect()
        under_way: dict[Any, str] = {}
        try:
            # Retries are for workers that died; an error in a run is told as text and would only come again.
            task = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1, retry_exceptions=False)(compute)
            waiting = list(runs)
            while waiting or under_way:
                while waiting and len(under_way) < (self.workers or len(runs)):
                    run = waiting.pop(0)
                    under_way[task.remote(text_of(run), str(checkpoints))] = run.id
                (done,), _ = ray.wait(list(under_way), num_returns=1)
                yield _given(done, under_way.pop(done))
        finally:
            for sent in under_way:
                ray.cancel(sent, force=True)
            if ours:
                ray.shutdown()

    def _connect(self) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        settings: dict[str, Any] = {} if self.address else {"num_cpus": self.workers, "include_dashboard": False}
        path = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
        if self.address not in (None, "auto"):
            _answers(self.address)
        try:
            ray.init(
                address=self.address or "local",
                logging_level=logging.ERROR,
                log_to_driver=False,
                runtime_env={"env_vars": {"PYTHONPATH": path}},
                **settings,
            )
        except (ConnectionError, RuntimeError, ValueError, SystemExit) as error:
            why = " ".join(str(error).split())[:200]
            where = f"reach a Ray cluster at {self.address}" if self.address else "start Ray here"
            raise UsageError(f"cannot {where}: {why}; {EXPECTED}") from error


def _answers(address: str) -> None:
    """See that something listens there: Ray itself would try for minutes, and then end the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"{address!r} is no address of a Ray cluster; {EXPECTED}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot reach a Ray cluster at {address}: {why}; {EXPECTED}") from error


def _given(done: Any, name: str) -> Told:
    try:
        return read(ray.get(done), name=name)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError):
        return died(name)
    except ray.exceptions.RayError as error:
        return Failure(id=name, reason=" ".join(str(error).split())[-300:])
