"""Forked processes that run third-party code: isolated, and ended with all processes that they start."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from resource import struct_rusage

_DIE_WITH_PARENT, _ADOPT_ORPHANS = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt
LARGE_BLOCK = 2**20  # [bytes]
_FAILED = 70  # the exit code of a child whose work raised


class ForkedProcess:
    """A forked, isolated process that does some work and ends; the parent stops it with all that it started."""

    usage: struct_rusage | None = None  # of it and of the processes it waited for; None until it has ended

    def __init__(self, work: Callable[[], None], trace: IO[bytes] | None = None) -> None:
        """Fork. In the child run `work`, with the Python frames of a crash in `trace`, and end the process."""
        parent, library = os.getpid(), libc()
        self.pid = fork()
        if self.pid:
            return
        code = _FAILED
        gc.freeze()  # a collection would copy the pages of all objects of the parent
        try:
            isolate_child(parent, library, trace)
            work()
            code = 0
        finally:
            os._exit(code)  # nothing of the parent may run in the child

    def wait(self) -> int:
        """Wait for its end; the status as `os.waitpid` gives it."""
        _, status, self.usage = os.wait4(self.pid, 0)
        self.pid = 0
        return status

    def stop(self) -> None:
        """End it with all processes that it started."""
        if self.pid:
            kill_tree(self.pid)
            with contextlib.suppress(ChildProcessError):
                self.wait()


def exit_description(status: int) -> str:
    """How a process ended, from the status that `os.waitpid` gives: "was ended by SIGSEGV"."""
    if os.WIFSIGNALED(status):
        return f"was ended by {signal_name(os.WTERMSIG(status))}"
    return f"ended with exit code {os.waitstatus_to_exitcode(status)}"


def signal_name(number: int) -> str:
    """The name of a signal, or its number if it has no name."""
    return signal.Signals(number).name if number in set(signal.Signals) else str(number)


def can_fork() -> bool:
    """True if a forked child can run torch: on Linux, and while no GPU is in use."""
    import torch

    return sys.platform == "linux" and not torch.cuda.is_initialized()  # type: ignore[no-untyped-call]


def fork() -> int:
    """Fork with flushed output, and without Python's warning about threads: the child uses one thread."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # numpy's idle threads are harmless: the child uses one thread, and fork handlers reset their locks
        warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
        return os.fork()


def isolate_child(parent: int, library: ctypes.CDLL | None, trace: IO[bytes] | None = None) -> None:
    """In a child: start a session, end when the parent ends, and detach the standard streams."""
    end_with_parent(parent, library)
    adopt_orphans(library)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - new streams, whose
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - locks that no thread holds
    if trace is None:
        faulthandler.disable()  # it would print a crash on the parent's terminal
    else:
        faulthandler.enable(trace, all_threads=False)


def end_with_parent(parent: int, library: ctypes.CDLL | None) -> None:
    """In a child: start a session, and end when the parent ends; only on Linux."""
    os.setsid()
    if library is not None:
        library.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(_FAILED)


def adopt_orphans(library: ctypes.CDLL | None) -> None:
    """Let processes that a descendant leaves behind become children of this one; only on Linux."""
    if library is not None:
        library.prctl(_ADOPT_ORPHANS, 1)


def libc() -> ctypes.CDLL | None:
    """The C library; load it before a fork. None except on Linux."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None


def return_free_memory() -> None:
    """Give memory that this process does not use back to the system: processes that it forks would keep it too."""
    gc.collect()
    library = libc()
    if library is not None and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def return_large_blocks() -> None:
    """From now on each large block goes back to the system when it is freed: the C library would keep most of them.

    Processes that this one forks do the same.
    """
    library = libc()
    if library is not None and hasattr(library, "mallopt"):
        library.mallopt(_MMAP_THRESHOLD, LARGE_BLOCK)


def die_with_parent() -> None:
    """In a new process, before it runs its program: end when the process that started it ends; only on Linux."""
    library = libc()
    if library is not None:
        library.prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """The ids of all processes that this one started, and of those that they started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    descendant_ids, queue = [], [pid]
    while queue:
        children = parents.get(queue.pop(), [])
        descendant_ids += children
        queue += children
    return descendant_ids


def has_children() -> bool:
    """True if this process has children; one that adopts orphans, as a `ForkedProcess`, then has no descendants."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def kill_tree(pid: int, *, itself: bool = True) -> int:
    """Kill a process and all processes that it started; the number of those that it started."""
    started = descendants(pid)
    for each in [*started, *[pid] * itself]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)
    return len(started)


@contextlib.contextmanager
def frozen_gc() -> Iterator[None]:
    """Exclude existing objects from garbage collection, so that forked processes do not copy their pages."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
