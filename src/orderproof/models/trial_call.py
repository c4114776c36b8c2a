"""The load and the first call of a module, made in a forked process: one that is not safe is refused.

A call that ends the process, never returns, takes all memory, leaves processes or threads behind or changes settings of
the process would do so to the program that audits it, and again at every further call. The code that makes a module may
start threads and change settings, but it must end.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import torch
from torch import nn

from orderproof import forked_process
from orderproof.errors import SubjectError, first_line
from orderproof.forked_process import can_fork
from orderproof.models.process_state import module_classes
from orderproof.recording.process_settings import changes, read_settings
from orderproof.recording.source import is_installed

TRIAL_TIMEOUT = 120.0  # [s] the time limit of one law, too
LOAD_TIMEOUT = 900.0  # [s] to load weights from a slow disk
MEMORY_SHARE = 0.9  # of the memory that is available, for one call
_THREAD_GRACE = 1.0  # [s] for threads that are about to end
_GIGABYTE = 2**30
_call_timeout: ContextVar[float] = ContextVar("call timeout", default=TRIAL_TIMEOUT)


@contextmanager
def call_timeout(seconds: float | None) -> Iterator[None]:
    """A block in which a first call may take this time [s]; None: the default."""
    token = _call_timeout.set(TRIAL_TIMEOUT if seconds is None else seconds)
    try:
        yield
    finally:
        _call_timeout.reset(token)


def check_trial_call(name: str, module: nn.Module, call: Callable[[], object]) -> None:
    """Make a call of a module in a forked process, where processes can fork. What it raises is of no interest.

    Raises `SubjectError` if the call must not be made in this process.
    """
    if not can_fork():
        return
    if reason := _reason(lambda: _objection_to_call(module, call), _call_timeout.get()):
        raise SubjectError(f"{name}: it cannot be audited: a call of it {reason}")


def check_trial_load(name: str, load: Callable[[], object]) -> None:
    """Load a module in a forked process, where processes can fork. What it raises is of no interest.

    Raises `SubjectError` if it must not be loaded in this process.
    """
    if not can_fork():
        return
    if reason := _reason(lambda: _objection(load), LOAD_TIMEOUT):
        raise SubjectError(f"{name}: it cannot be loaded: its code {reason}")


def _reason(objection: Callable[[], str], timeout: float) -> str:
    process = _TrialProcess(objection)
    try:
        return process.reason(timeout)
    finally:
        process.stop()


class _TrialProcess(forked_process.ForkedProcess):
    """A forked process that does something and writes into a pipe why it must not be done."""

    def __init__(self, objection: Callable[[], str]) -> None:
        self._read, write = os.pipe()

        def work() -> None:
            os.close(self._read)
            torch.set_num_threads(1)
            os.write(write, b"." + objection().encode())

        super().__init__(work)
        os.close(write)

    def reason(self, timeout: float) -> str:
        """Why it must not be done; empty if it may be."""
        end = os.pidfd_open(self.pid)  # a process that the call started may keep the pipe open
        try:
            ready, _, _ = select.select([self._read, end], [], [], timeout)
        finally:
            os.close(end)
        if not ready:
            return f"did not return within {timeout:g} s{_threads_of_the_code()}"
        if self._read in ready and (text := os.read(self._read, 1 << 16)):
            return text[1:].decode()
        return f"took the process with it, which {forked_process.exit_description(self.wait())}"

    def stop(self) -> None:
        """End the process and all processes that it started."""
        os.close(self._read)
        super().stop()


def _threads_of_the_code() -> str:
    """A hint at the threads that a fork does not copy: a call that waits for one of them never returns."""
    main = threading.main_thread()
    names = [each.name for each in threading.enumerate() if each is not main and not each.daemon]  # not of a display
    if not names:
        return ""
    return f"; it may wait for a thread that ran before it ({names[0]}), which does not run in the process of this call"


def _objection_to_call(module: nn.Module, call: Callable[[], object]) -> str:
    """In the child: make the call; why it must not be made in the parent, or an empty text."""
    with torch.no_grad():
        before = read_settings() | module_classes(module)
        threads = set(threading.enumerate())
        if reason := _objection(call, may_start_processes=False):
            return reason
        changed = changes(before, read_settings() | module_classes(module))
    if running := _running_threads(threads):
        return f"left {running} thread{'s' * (running > 1)} running"
    return f"changed {', '.join(changed[:4])}" if changed else ""


def _objection(act: Callable[[], object], *, may_start_processes: bool = True) -> str:
    """In the child: act; why it must not be done in the parent, or an empty text."""
    own = os.getpid()
    limit = _limit_memory()
    raised = ""
    forks: list[int] = []
    os.register_at_fork(before=lambda: forks.append(os.getpid()))
    try:
        act()
    except Exception as error:  # noqa: BLE001 - the parent meets it again, and reports it
        if _is_out_of_memory(error):
            raised = f"needs more than the {limit / _GIGABYTE:.3g} GiB of memory that are available"
    except BaseException as error:  # noqa: BLE001 - the model must not end the program
        raised = f"raised {first_line(error)}"
    if os.getpid() != own:
        os._exit(0)  # the model forked, and this is its child
    left = forked_process.kill_tree(own, itself=False)
    if raised:
        return raised
    if forks:
        return "forks the process"
    if left and not may_start_processes:
        return f"left {left} process{'es' * (left > 1)} behind"
    return ""


def _running_threads(before: set[threading.Thread]) -> int:
    """The number of threads that were started and do not end, without those that only watch."""
    end = time.monotonic() + _THREAD_GRACE
    while started := {thread for thread in set(threading.enumerate()) - before if not _is_monitor(thread)}:
        if time.monotonic() > end:
            return len(started)
        time.sleep(0.01)
    return 0


def _is_monitor(thread: threading.Thread) -> bool:
    """True for a daemon of a class that a library defines, as that of a progress bar: it runs no code of the model."""
    return thread.daemon and is_installed(type(thread).run.__code__.co_filename)


def _is_out_of_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            return True
        error = error.__cause__
    return False


def _limit_memory() -> float:
    """Limit the data of this process to the memory that is available; the limit for new data [bytes]."""
    import resource

    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    used, addresses = (int(status[name].split()[0]) * 1024 for name in ("VmData", "VmSize"))
    available = available_memory() * MEMORY_SHARE
    stated, _ = resource.getrlimit(resource.RLIMIT_AS)  # by `ulimit -v`
    if stated != resource.RLIM_INFINITY:
        available = min(available, max(stated - addresses, 0))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = int(used + available)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    return available


def available_memory() -> float:
    """The memory that is available on this machine, without what its control group withholds [bytes]."""
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
    available = float(sizes["MemAvailable"])
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="utf-8")
    except OSError:
        return available
    return available if limit == "max" else min(available, max(int(limit) - int(used), 0))
