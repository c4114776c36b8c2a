"""Rows as tasks of a Ray cluster with one CPU each; without an address, of a local instance that ends with the run.

A worker of Ray has threads, so it does not fork: it starts a row server, which stays warm for later tasks. If the
worker or its node dies, Ray submits the task again. The nodes need the same version of orderproof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import ray

from orderproof.atlas.engines.engine import Request, RowEngine, RowTask
from orderproof.atlas.row import one_line
from orderproof.atlas.row_server import RowClient, class_at, place_of
from orderproof.errors import OrderproofError
from orderproof.ray_cluster import WORKER_DEATHS, connected

R = TypeVar("R")
MAX_RETRIES = 2  # after the death of a worker
_clients: dict[str, RowClient] = {}  # in a worker, by the class of the requests


def make_row_json(kind: str, request: str) -> str:
    """The row of a request, both as JSON; in a worker of Ray."""
    if kind not in _clients:
        _clients[kind] = RowClient(class_at(kind))
    try:
        _clients[kind].ask(request)
        return _clients[kind].answer()
    except RuntimeError:
        del _clients[kind]  # the next task starts another server
        raise


class RayRow(RowTask[R]):
    """A row that a task makes."""

    def __init__(self, reference: Any, request: Request[R]) -> None:
        self.reference, self.request = reference, request

    @property
    def title(self) -> str:
        """The row in a line about progress."""
        return self.request.title

    def poll(self) -> R | None:
        """The row, once the task has ended; None before."""
        done, _ = ray.wait([self.reference], timeout=0)
        if not done:
            return None
        try:
            return self.request.row_of(ray.get(self.reference))
        except WORKER_DEATHS:
            return self.request.died(f"its worker died {1 + MAX_RETRIES} times (out of memory?)")
        except ray.exceptions.RayTaskError as error:
            return self.request.crashed(str(error.cause))
        except ray.exceptions.RayError as error:  # of the cluster: the row can be made by another run
            raise OrderproofError(f"the Ray cluster failed: {one_line(str(error))}") from error

    def stop(self) -> None:
        """End the worker of the task, and discard the row."""
        ray.cancel(self.reference, force=True)


@contextmanager
def started(
    kind: type[Request[R]], target: str | None, workers: int | None, close_in_child: Callable[[], None]
) -> Iterator[RowEngine[R]]:
    """As many workers as the cluster has CPUs by default. `close_in_child` is for engines that fork."""
    place = place_of(kind)
    with connected(target, workers):
        task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, retry_exceptions=False)(make_row_json)
        cpus = int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
        yield RowEngine(workers or cpus, lambda request: RayRow(task.remote(place, request.to_line()), request))
