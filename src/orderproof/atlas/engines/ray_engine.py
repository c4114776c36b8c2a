"""Rows as tasks of a Ray cluster with one CPU each; without an address, of a local instance that ends with the run.

A worker of Ray has threads, so it does not fork: it starts a row server, which stays warm for later tasks. If the
worker or its node dies, Ray submits the task again. The nodes need the same version of orderproof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ray

from orderproof.atlas.engines.engine import RowEngine
from orderproof.atlas.row import AtlasRow, empty_row, one_line, with_failure
from orderproof.atlas.row_server import RowClient
from orderproof.atlas.worker import RowRequest
from orderproof.errors import OrderproofError
from orderproof.ray_cluster import WORKER_DEATHS, connected

MAX_RETRIES = 2  # after the death of a worker
_clients: list[RowClient] = []  # in a worker: at most one


def make_row_json(request: str) -> str:
    """The row of a request, both as JSON; in a worker of Ray."""
    if not _clients:
        _clients.append(RowClient())
    try:
        return _clients[0].row(request)
    except RuntimeError:
        _clients.clear()  # the next task starts another server
        raise


class RayRow:
    """A row that a task makes."""

    def __init__(self, reference: Any, request: RowRequest) -> None:
        self.reference, self.request = reference, request
        self.empty_row = empty_row(request.name, request.attention)

    def poll(self) -> AtlasRow | None:
        """The row, once the task has ended; None before."""
        done, _ = ray.wait([self.reference], timeout=0)
        if not done:
            return None
        try:
            return AtlasRow.model_validate_json(ray.get(self.reference))
        except WORKER_DEATHS:
            reason = f"its worker died {1 + MAX_RETRIES} times (out of memory?)"
            return with_failure(self.empty_row, "memory", reason, limit=self.request.limits.memory_gib)
        except ray.exceptions.RayTaskError as error:
            return with_failure(self.empty_row, "crash", str(error.cause))
        except ray.exceptions.RayError as error:  # of the cluster: the row can be made by another run
            raise OrderproofError(f"the Ray cluster failed: {one_line(str(error))}") from error

    def stop(self) -> None:
        """End the worker of the task, and discard the row."""
        ray.cancel(self.reference, force=True)


@contextmanager
def started(target: str | None, workers: int | None, close_in_child: Callable[[], None]) -> Iterator[RowEngine]:
    """As many workers as the cluster has CPUs by default. `close_in_child` is for engines that fork."""
    with connected(target, workers):
        task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, retry_exceptions=False)(make_row_json)
        cpus = int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
        yield RowEngine(workers or cpus, lambda request: RayRow(task.remote(request.model_dump_json()), request))
