"""Processes of this machine: started afresh (spawn), one torch thread each.

A worker that dies (killed, out of memory) breaks the pool: a new one takes the runs that are left, each going on from
its checkpoint. A run whose worker dies three times is given up.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from orderproof.lab.configuration import RunConfig
from orderproof.lab.engines.engine import ATTEMPTS, Engine, Failure, Told, compute
from orderproof.lab.result import RunResult


class Local(Engine):
    """A pool of processes."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def compute(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[Told]:
        left = {run.id: run for run in runs}
        deaths: Counter[str] = Counter()
        while left:
            pool = ProcessPoolExecutor(
                self.workers, mp_context=multiprocessing.get_context("spawn"), initializer=_alone
            )
            try:
                for told in self._until_broken(pool, left, checkpoints):
                    given = self._after_death(told, deaths) if isinstance(told, str) else told
                    if given is not None:
                        del left[given.id]
                        yield given
            finally:
                _end(pool)

    def _after_death(self, name: str, deaths: Counter[str]) -> Failure | None:
        """A run that was under way when a worker died is given up, or tried again."""
        deaths[name] += 1
        if deaths[name] < ATTEMPTS:
            return None
        return Failure(id=name, reason=f"its worker died {ATTEMPTS} times (out of memory?)")

    def _until_broken(
        self, pool: ProcessPoolExecutor, left: dict[str, RunConfig], checkpoints: Path
    ) -> Iterator[RunResult | Failure | str]:
        """Results; then, should the pool break, the names of the runs it may have been at."""
        waiting = list(left.values())
        under_way: dict[Future[str], str] = {}
        try:
            while waiting or under_way:
                while waiting and len(under_way) < self.workers:
                    run = waiting.pop(0)
                    under_way[pool.submit(compute, json.dumps(run.plain()), str(checkpoints))] = run.id
                for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                    yield _given(done, under_way[done])
                    del under_way[done]
        except BrokenProcessPool:
            yield from list(under_way.values())


def _given(done: Future[str], name: str) -> RunResult | Failure:
    try:
        return RunResult.model_validate_json(done.result())
    except BrokenProcessPool:
        raise
    except Exception as error:  # noqa: BLE001 - one run that fails is one failure, whatever it raised
        return Failure(id=name, reason=f"{type(error).__name__}: {error}")


def _alone() -> None:
    """In a worker: one thread, and none of the interrupts of the terminal, which are the parent's to handle."""
    import signal

    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def _end(pool: ProcessPoolExecutor) -> None:
    """Leave no process behind, whatever they are at."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
    for process in processes:
        process.join()
