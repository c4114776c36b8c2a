"""Processes of this machine: started afresh (spawn), one torch thread each.

A worker that dies (killed, out of memory) breaks the pool, and with it goes whatever the others were at. A new pool
takes the runs that are left, each going on from its checkpoint. Those that were under way come first, one at a time, so
that the next death has one culprit; a run whose worker dies three times with nothing beside it is given up.

A worker ends with its parent, however that ends: a thread of it waits for the parent's death.
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

from orderproof.lab.configuration import RunConfig
from orderproof.lab.engines.engine import ATTEMPTS, Engine, Told, compute, died, read, text_of


class Local(Engine):
    """A pool of processes."""

    workers: int

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def compute(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[Told]:
        left = {run.id: run for run in runs}
        suspects: list[str] = []
        deaths: Counter[str] = Counter()
        while left:
            waiting = [left[name] for name in suspects] or list(left.values())
            lost: list[str] = []
            for told in _in_a_pool(1 if suspects else self.workers, waiting, checkpoints, lost):
                del left[told.id]
                yield told
            deaths.update(lost if len(lost) == 1 else [])
            for name in [name for name in lost if deaths[name] == ATTEMPTS]:
                del left[name]
                yield died(name)
            suspects = [name for name in dict.fromkeys([*suspects, *lost]) if name in left]


def _in_a_pool(workers: int, waiting: list[RunConfig], checkpoints: Path, lost: list[str]) -> Iterator[Told]:
    """What comes of the runs; should a worker die, ``lost`` gets the names of those under way."""
    pool = ProcessPoolExecutor(
        min(workers, len(waiting)), mp_context=multiprocessing.get_context("spawn"), initializer=_begin
    )
    under_way: dict[Future[str], str] = {}
    try:
        while waiting or under_way:
            while waiting and len(under_way) < workers:
                with _interrupts_later():
                    sent = pool.submit(compute, text_of(waiting[0]), str(checkpoints))
                under_way[sent] = waiting.pop(0).id
            done = wait(under_way, return_when=FIRST_COMPLETED).done
            whole = [one for one in done if not isinstance(one.exception(), BrokenProcessPool)]
            for one in whole:
                yield read(one.result(), name=under_way.pop(one))
            if len(whole) < len(done):
                break
    except BrokenProcessPool:  # from submit: a worker died between two runs
        pass
    finally:
        _end(pool)
    lost.extend(under_way.values())


def _begin() -> None:
    """In a worker: one thread, none of the terminal's interrupts, which are the parent's to handle, and no orphan."""
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
def _interrupts_later() -> Iterator[None]:
    """Keep the terminal's interrupts back: a process that is started meanwhile never sees one before `_begin`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(pool: ProcessPoolExecutor) -> None:
    """Leave no process behind, whatever they are at."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
    for process in processes:
        process.join()
