"""A worker of Ray that is killed while it works."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orderproof.forked_process import descendants
from tests.lab.small_study import wait_until


@contextmanager
def one_killed_worker(function: str) -> Iterator[list[int]]:
    """Kill the first worker of this process that executes a function; its process id, once the block has ended.

    Not when a checkpoint is there: a short run removes it before a busy machine looks.
    """
    killed: list[int] = []

    def kill() -> None:
        killed.append(wait_until(lambda: [pid for pid in descendants(os.getpid()) if _executes(pid, function)])[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    yield killed
    killer.join()


def _executes(pid: int, function: str) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(f"ray::{function}".encode())
    except OSError:
        return False
