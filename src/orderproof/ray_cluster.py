"""A connection to a Ray cluster, or to a local instance that ends with the work.

Usage statistics and the dashboard are disabled.
Source: Moritz et al. 2018, "Ray: A Distributed Framework for Emerging AI Applications", OSDI, arXiv:1712.05889.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from orderproof.errors import UsageError

USAGE_HINT = "expected --engine ray:HOST:PORT, ray:auto or ray"
PACKAGE_FOLDER = Path(__file__).parents[1]  # on the PYTHONPATH of local workers
WORKER_DEATHS = (
    ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError,
)  # fmt: skip
"""What `ray.get` raises if the worker died at every attempt."""


@contextmanager
def connected(address: str | None, workers: int | None) -> Iterator[None]:
    """Connect, unless this process is connected already. Raises `UsageError` if there is no such cluster.

    `address`: HOST:PORT, ray://HOST:PORT, auto for the cluster of this machine, or None for a new local instance with
    `workers` CPUs (None: all).
    """
    if ray.is_initialized():
        yield
        return
    _connect(address, workers)
    try:
        yield
    finally:
        ray.shutdown()


def _connect(address: str | None, workers: int | None) -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    settings: dict[str, Any] = {} if address else {"num_cpus": workers, "include_dashboard": False}
    path = os.pathsep.join([str(PACKAGE_FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    if address not in (None, "auto"):
        _check_reachable(address)
    try:
        ray.init(
            address=address or "local",
            logging_level=logging.ERROR,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": path}},
            **settings,
        )
    except (ConnectionError, RuntimeError, ValueError, SystemExit) as error:
        cause = " ".join(str(error).split())[:200]
        action = f"connect to the Ray cluster at {address}" if address else "start a local Ray instance"
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
