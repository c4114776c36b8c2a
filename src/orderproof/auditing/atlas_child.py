"""One architecture, one process: forked, limited in time and memory, and unable to hurt its parent.

The child is in a session of its own, so that what it starts ends with it; it ends when its parent does. It
leaves its row in a file, which the parent reads once the child is gone: nothing can block on the other.
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

from orderproof.auditing import processes
from orderproof.auditing.atlas_rows import Row, failure, one_line

GIB = 2**30
GRACE = 10  # [s] after its time a child without a parent ends itself
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')


@dataclass(frozen=True)
class Limits:
    """What one architecture may use."""

    seconds: float = 300.0
    memory: float = 4.0  # [GiB] of address space


@dataclass
class Child:
    """A process that makes one row."""

    pid: int
    blank: Row  # what is known of the row before it is made
    limits: Limits
    began: float
    result: IO[bytes] = field(repr=False)
    trace: IO[bytes] = field(repr=False)

    def row(self) -> Row | None:
        """The row, once the child is gone or its time is up; None while it works."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        late = not pid and time.monotonic() - self.began > self.limits.seconds
        if not pid and not late:
            return None
        self._end(gone=bool(pid))
        with self.result, self.trace:
            return self._made(
                late=late, status=status, peak=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / GIB
            )

    def _made(self, *, late: bool, status: int, peak: float) -> Row:
        made = self._left()
        if late:
            seconds = f"{self.limits.seconds:g}"
            made = failure(self.blank, "timeout", f"not done after {seconds} s", limit=self.limits.seconds)
        elif status != 0 or made is None:
            made = self._died(status, peak)
        if made.failed is not None and made.failed.category == "memory":
            made = failure(made, "memory", made.failed.reason, limit=self.limits.memory)
        if not made.seconds:
            made = made.model_copy(update={"seconds": time.monotonic() - self.began})
        return made

    def stop(self) -> None:
        """End the child and all that it started, and forget what it made."""
        self._end(gone=False)
        with self.result, self.trace:
            pass

    def _end(self, *, gone: bool) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if not gone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # it may not have its session yet
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)

    def _left(self) -> Row | None:
        self.result.seek(0)
        text = self.result.read()
        try:
            row = Row.model_validate_json(text)
        except ValidationError:
            return None
        return row if row.key == self.blank.key else None

    def _died(self, status: int, peak: float) -> Row:
        self.trace.seek(0)
        told = self.trace.read(65536).decode(errors="replace")
        frame = _FRAME.search(told)
        where = f" in {frame[3]} ({frame[1].rsplit('/', 1)[-1]}:{frame[2]})" if frame else ""
        if not os.WIFSIGNALED(status):
            code = os.waitstatus_to_exitcode(status)
            return failure(self.blank, "crash", f"its process ended with exit code {code} and left no row{where}")
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        if number == signal.SIGKILL or peak > self.limits.memory / 2:
            return failure(self.blank, "memory", f"ended by {name} with {peak:.1f} GiB in use{where}")
        return failure(self.blank, "crash", f"ended by {name}{where}")


def start(blank: Row, work: Callable[[], Row], limits: Limits, let_go: Callable[[], None]) -> Child:
    """Fork a child that makes a row. `let_go` closes what the parent alone should hold."""
    result, trace = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - read when the child is gone
    parent, library = os.getpid(), processes.library()
    pid = processes.fork()
    if pid:
        return Child(pid, blank, limits, time.monotonic(), result, trace)
    code = 70
    try:
        processes.confine(parent, library, trace)
        _limit(limits)
        let_go()
        row = work()
        result.write(row.model_dump_json().encode())
        result.flush()
        code = 0
    except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run in the child
        with contextlib.suppress(BaseException):
            row = failure(blank, "crash", one_line(f"{type(error).__name__}: {error}"))
            result.write(row.model_dump_json().encode())
            result.flush()
            code = 0
    finally:
        os._exit(code)


def _limit(limits: Limits) -> None:
    signal.alarm(int(limits.seconds) + GRACE)
    size = int(limits.memory * GIB)
    for kind, most in ((resource.RLIMIT_AS, size), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # a lower limit is in force, or the system has none
            resource.setrlimit(kind, (most, most))


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back, so that no child is started without being known."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """While there are forks: what exists now is shared, and not walked over by the children's collectors."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
