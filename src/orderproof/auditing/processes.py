"""Processes of ours that run code of others: confined, limited in time, and ended with all that they started."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import IO

_DIE_WITH_PARENT, _ADOPT_ORPHANS = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER


def can_fork() -> bool:
    """Whether a forked child can run torch: on Linux, and while no GPU is in use."""
    import torch

    return sys.platform == "linux" and not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]


def fork() -> int:
    """Fork, without torn output and without Python's warning: the child uses one thread."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # numpy's idle threads are no danger: the child uses one thread, and locks of theirs are reset by fork handlers
        warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
        return os.fork()


def confine(parent: int, library: ctypes.CDLL | None, trace: IO[bytes] | None = None) -> None:
    """In a child: a session of its own, an end when its parent ends, and nothing to read from or print to."""
    os.setsid()
    if library is not None:
        library.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        library.prctl(_ADOPT_ORPHANS, 1)
        if os.getppid() != parent:
            os._exit(70)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - new ones, on
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - which no lock is held
    if trace is None:
        faulthandler.disable()  # it would tell of a crash where the parent prints
    else:
        faulthandler.enable(trace, all_threads=False)


def library() -> ctypes.CDLL | None:
    """The C library, to be had before a fork."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None


def descendants(pid: int) -> list[int]:
    """All processes that this one started, and those started by them."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, open_ = [], [pid]
    while open_:
        children = parents.get(open_.pop(), [])
        found += children
        open_ += children
    return found


def end(pid: int, *, itself: bool = True) -> int:
    """Kill a process with all that it started; how many there were beside it."""
    started = descendants(pid)
    for each in [*started, *[pid] * itself]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)
    return len(started)
