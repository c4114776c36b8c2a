"""Worker processes on this machine, started with spawn, with one torch thread each.

A worker that dies (killed, out of memory) breaks the pool and stops the other workers. A new pool takes the remaining
runs, which resume from their checkpoints. The interrupted runs are then executed one at a time, so that the next death
identifies its run; a run whose worker dies three times while it runs alone is abandoned.

A worker ends with its parent: a thread in the worker waits for the end of the parent process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

from orderproof.errors import UsageError
from orderproof.lab.engines.engine import (
    MAX_ATTEMPTS,
    Engine,
    RunOutcome,
    parse_outcome,
    run_job,
    serialise_run,
    worker_died,
)
from orderproof.lab.run_config import RunConfig


class LocalEngine(Engine):
    """A pool of local processes."""

    workers: int

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        remaining = {run.id: run for run in runs}
        suspects: list[str] = []
        deaths: Counter[str] = Counter()
        while remaining:
            waiting = [remaining[run_id] for run_id in suspects] or list(remaining.values())
            interrupted: list[str] = []
            for outcome in _run_pool(1 if suspects else self.workers, waiting, checkpoints, interrupted):
                del remaining[outcome.id]
                yield outcome
            deaths.update(interrupted if len(interrupted) == 1 else [])
            for run_id in [run_id for run_id in interrupted if deaths[run_id] == MAX_ATTEMPTS]:
                del remaining[run_id]
                yield worker_died(run_id)
            suspects = [run_id for run_id in dict.fromkeys([*suspects, *interrupted]) if run_id in remaining]


def make_local_engine(target: str | None, workers: int | None) -> LocalEngine:
    """The local engine. Raises `UsageError` for a target: it has none."""
    if target is not None:
        raise UsageError(f"expected --engine local, which has no target; got 'local:{target}'")
    return LocalEngine(workers)


ENGINE = make_local_engine


def _run_pool(
    workers: int, waiting: list[RunConfig], checkpoints: Path, interrupted: list[str]
) -> Iterator[RunOutcome]:
    """Yield the outcomes of the runs; if a worker dies, append the ids of the unfinished runs to ``interrupted``."""
    pool = ProcessPoolExecutor(
        min(workers, len(waiting)), mp_context=multiprocessing.get_context("spawn"), initializer=_initialise_worker
    )
    running: dict[Future[str], str] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                with _sigint_blocked():
                    future = pool.submit(run_job, serialise_run(waiting[0]), str(checkpoints))
                running[future] = waiting.pop(0).id
            done = wait(running, return_when=FIRST_COMPLETED).done
            finished = [future for future in done if not isinstance(future.exception(), BrokenProcessPool)]
            for future in finished:
                yield parse_outcome(future.result(), run_id=running.pop(future))
            if len(finished) < len(done):
                break
    except BrokenProcessPool:  # from submit: a worker died between two runs
        pass
    finally:
        _kill_pool(pool)
    interrupted.extend(running.values())


def _initialise_worker() -> None:
    """In a worker: use one thread, leave Ctrl-C to the parent, and end with the parent."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT: a process started in this context cannot receive it before `_initialise_worker` ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill_pool(pool: ProcessPoolExecutor) -> None:
    """Kill all workers and wait for their end."""
    processes = list((pool._processes or {}).values())
    manager = pool._executor_manager_thread
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
    for process in processes:
        process.join()
    if manager is not None:  # otherwise it may close its pipe while Python, on its way out, writes to it
        manager.join()  # type: ignore[attr-defined]  # typeshed gives it another class
