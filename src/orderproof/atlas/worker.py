"""A forked process that audits one architecture, with limits on time and memory.

The process leads its own session, so that its own child processes are killed with it, and it ends when its parent
does. It writes its row to a temporary file, which the parent reads after the process has ended, so neither can block
on the other.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO

from pydantic import ValidationError

from orderproof import forked_process
from orderproof.atlas.row import AtlasRow, one_line, with_failure

GIB = 2**30
GRACE_SECONDS = 10  # [s] after the time limit, SIGALRM ends a process that its parent has not killed
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')


@dataclass(frozen=True)
class Limits:
    """Limits of one process."""

    seconds: float = 300.0
    memory_gib: float = 4.0  # [GiB] of address space


@dataclass
class AtlasWorker:
    """A process that produces one row."""

    pid: int
    empty_row: AtlasRow  # the row with its key only, for a process that leaves none
    limits: Limits
    start: float
    result: IO[bytes] = field(repr=False)
    trace: IO[bytes] = field(repr=False)

    def poll(self) -> AtlasRow | None:
        """The row, once the process has ended or exceeded its time; None while it runs."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        late = not pid and time.monotonic() - self.start > self.limits.seconds
        if not pid and not late:
            return None
        self._end(gone=bool(pid))
        with self.result, self.trace:
            return self._finished_row(
                late=late, status=status, peak_gib=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / GIB
            )

    def _finished_row(self, *, late: bool, status: int, peak_gib: float) -> AtlasRow:
        row = self._read_row()
        if late:
            seconds = f"{self.limits.seconds:g}"
            row = with_failure(self.empty_row, "timeout", f"not done after {seconds} s", limit=self.limits.seconds)
        elif status != 0 or row is None:
            row = self._crash_row(status, peak_gib)
        if row.failure is not None and row.failure.category == "memory":
            row = with_failure(row, "memory", row.failure.reason, limit=self.limits.memory_gib)
        if not row.seconds:
            row = row.model_copy(update={"seconds": time.monotonic() - self.start})
        return row

    def stop(self) -> None:
        """Kill the process and its children, and discard its row."""
        self._end(gone=False)
        with self.result, self.trace:
            pass

    def _end(self, *, gone: bool) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if not gone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # it may not lead its session yet
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)

    def _read_row(self) -> AtlasRow | None:
        self.result.seek(0)
        text = self.result.read()
        try:
            row = AtlasRow.model_validate_json(text)
        except ValidationError:
            return None
        return row if row.key == self.empty_row.key else None

    def _crash_row(self, status: int, peak_gib: float) -> AtlasRow:
        self.trace.seek(0)
        traceback = self.trace.read(65536).decode(errors="replace")
        frame = _FRAME.search(traceback)
        where = f" in {frame[3]} ({frame[1].rsplit('/', 1)[-1]}:{frame[2]})" if frame else ""
        if not os.WIFSIGNALED(status):
            code = os.waitstatus_to_exitcode(status)
            return with_failure(
                self.empty_row, "crash", f"its process ended with exit code {code} and left no row{where}"
            )
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        if number == signal.SIGKILL or peak_gib > self.limits.memory_gib / 2:
            return with_failure(self.empty_row, "memory", f"ended by {name} with {peak_gib:.1f} GiB in use{where}")
        return with_failure(self.empty_row, "crash", f"ended by {name}{where}")


def start_worker(
    empty_row: AtlasRow, work: Callable[[], AtlasRow], limits: Limits, close_in_child: Callable[[], None]
) -> AtlasWorker:
    """Fork a process that computes a row. `close_in_child` closes files that only the parent should hold."""
    result, trace = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - read after the process has ended
    parent, library = os.getpid(), forked_process.libc()
    pid = forked_process.fork()
    if pid:
        return AtlasWorker(pid, empty_row, limits, time.monotonic(), result, trace)
    exit_code = 70
    try:
        forked_process.isolate_child(parent, library, trace)
        _apply_limits(limits)
        close_in_child()
        row = work()
        result.write(row.model_dump_json().encode())
        result.flush()
        exit_code = 0
    except BaseException as error:  # noqa: BLE001 - no code of the parent may run in the child
        with contextlib.suppress(BaseException):
            row = with_failure(empty_row, "crash", one_line(f"{type(error).__name__}: {error}"))
            result.write(row.model_dump_json().encode())
            result.flush()
            exit_code = 0
    finally:
        os._exit(exit_code)


def _apply_limits(limits: Limits) -> None:
    signal.alarm(int(limits.seconds) + GRACE_SECONDS)
    size = int(limits.memory_gib * GIB)
    for kind, most in ((resource.RLIMIT_AS, size), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # a lower limit is set already, or the system has none
            resource.setrlimit(kind, (most, most))


@contextlib.contextmanager
def defer_sigint() -> Iterator[None]:
    """Delay Ctrl-C, so that no process is started without being recorded."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


@contextlib.contextmanager
def frozen_gc() -> Iterator[None]:
    """Exclude existing objects from garbage collection, so that forked processes do not copy their pages."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
