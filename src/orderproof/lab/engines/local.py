"""Processes on this machine, one for each job, with one torch thread each.

A process that dies (killed, out of memory) ends its own job only. The job is started again and a single run resumes
from its checkpoint; a job whose process dies three times is abandoned. On Linux the processes are forked from a server
process that has imported torch, elsewhere they are spawned: forking this process could copy the locks of its threads.

A process ends with its parent: a thread in it waits for the end of the parent process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from orderproof.errors import UsageError
from orderproof.lab.engines.engine import (
    MAX_ATTEMPTS,
    Engine,
    Job,
    RunOutcome,
    jobs,
    parse_outcomes,
    run_job,
    serialise_job,
    worker_died,
)
from orderproof.lab.run_config import RunConfig
from orderproof.signals import sigint_blocked

if sys.platform == "linux":
    PROCESSES = multiprocessing.get_context("forkserver")
    # The optimizer of torch imports torch._dynamo: once in the server, and not in each process.
    PROCESSES.set_forkserver_preload(["orderproof.lab.trainer", "torch._dynamo"])
else:
    PROCESSES = multiprocessing.get_context("spawn")


class LocalEngine(Engine):
    """Local processes."""

    workers: int

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def run(self, runs: list[RunConfig], checkpoints: Path) -> Iterator[RunOutcome]:
        waiting, deaths = deque(jobs(runs)), Counter[str]()  # by the first run of a job
        running: dict[Connection, tuple[BaseProcess, Job]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    job = waiting.popleft()
                    with sigint_blocked():
                        results, process = _start(job, checkpoints)
                        running[results] = process, job
                ready = wait(list(running))
                for results in [each for each in running if each in ready]:
                    process, job = running[results]
                    outcomes = _outcomes(results, job)
                    del running[results]
                    _end(results, process)
                    if outcomes is None:
                        deaths[job[0].id] += 1
                        if deaths[job[0].id] < MAX_ATTEMPTS:
                            waiting.append(job)
                            continue
                        outcomes = worker_died(job)
                    yield from outcomes
        finally:
            for results, (process, _) in running.items():
                _end(results, process)


def make_local_engine(target: str | None, workers: int | None) -> LocalEngine:
    """The local engine. Raises `UsageError` for a target: it has none."""
    if target is not None:
        raise UsageError(f"expected --engine local, which has no target; got 'local:{target}'")
    return LocalEngine(workers)


ENGINE = make_local_engine


def _start(job: Job, checkpoints: Path) -> tuple[Connection, BaseProcess]:
    """A process that executes a job, and the connection on which it sends the outcomes."""
    results, sender = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_work, args=(sender, serialise_job(job), str(checkpoints)))
    process.start()
    sender.close()  # so that the death of the process closes the connection
    return results, process


def _work(sender: Connection, text: str, checkpoints: str) -> None:
    """In a process: use one thread, leave Ctrl-C to the parent, end with the parent, and execute the job."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sender.send(run_job(text, checkpoints))


def _outcomes(results: Connection, job: Job) -> list[RunOutcome] | None:
    """The outcomes that a process has sent; None if it died before."""
    try:
        text = results.recv()
    except (EOFError, OSError):  # it sent nothing, or a part of its message
        return None
    return parse_outcomes(text, job)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _end(results: Connection, process: BaseProcess) -> None:
    """Kill a process, if it still runs, and wait for its end."""
    results.close()
    process.kill()
    process.join()
    process.close()
