"""Run a function on several local ranks: forked processes that communicate over gloo on the loopback interface."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import re
import signal
import socket
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, distributed

from orderproof.errors import UnsupportedCallError

TIMEOUT = 30.0  # [s] for all ranks together
_EXIT_TIMEOUT = 3.0  # [s] for a rank that disconnected another one to end
_STACK_TIMEOUT = 1.0  # [s] for a rank to write its stack


def run_on_ranks(work: Callable[[int], list[Tensor]], world: int, *, limit: float = TIMEOUT) -> list[list[Tensor]]:
    """The results of ``work(rank)`` on each of ``world`` ranks, within ``limit`` [s].

    Raises `UnsupportedCallError` if processes cannot be forked or the work raises it, `RuntimeError` if a rank fails.
    """
    if "fork" not in multiprocessing.get_all_start_methods() or not distributed.is_gloo_available():
        raise UnsupportedCallError("expected fork and gloo to start ranks, which are not available here")
    forking = multiprocessing.get_context("fork")
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forking with threads, which the ranks do not use
        ranks = [forking.Process(target=_rank, args=(work, r, world, folder, limit), daemon=True) for r in range(world)]
        try:
            for rank in ranks:
                rank.start()
            _wait(ranks, Path(folder), limit)
            return _collect_results(ranks, Path(folder), limit)
        finally:
            for rank in ranks:
                if rank.is_alive():
                    rank.kill()
                rank.join()
                rank.close()


def _wait(ranks: Sequence[BaseProcess], folder: Path, limit: float) -> None:
    """Wait until all ranks have ended, one has failed (the others would wait for it), or time is up."""
    end = time.monotonic() + limit
    running = list(ranks)
    while running and time.monotonic() < end:
        connection.wait([rank.sentinel for rank in running], end - time.monotonic())
        running = [rank for rank in running if rank.is_alive()]
        answers = [torch.load(file, weights_only=True) for file in folder.glob("*.pt")]
        if any(rank.exitcode for rank in ranks) or any("result" not in answer for answer in answers):
            # A rank that crashes disconnects the others before its process has ended: its exit code is the reason.
            silent = [rank for i, rank in enumerate(ranks) if not (folder / f"{i}.pt").exists()]
            ended = connection.wait([rank.sentinel for rank in silent], _EXIT_TIMEOUT) if silent else []
            for rank in silent:
                if rank.sentinel in ended:
                    rank.join()  # it has its exit code a moment after its sentinel is ready
            return


def _collect_results(ranks: Sequence[BaseProcess], folder: Path, limit: float) -> list[list[Tensor]]:
    """The results of all ranks, or the error of the first rank that failed; its failure disconnects the others."""
    files = sorted(folder.glob("*.pt"), key=lambda file: file.stat().st_mtime_ns)
    results = {int(file.stem): torch.load(file, weights_only=True) for file in files}
    missing = [r for r in range(len(ranks)) if r not in results]
    crashed = [r for r in missing if ranks[r].exitcode is not None]
    if crashed:  # before the errors of the others, which report only that it disconnected
        reason = f"ended with exit code {ranks[crashed[0]].exitcode} and returned nothing"
        raise _failure(crashed[0], ranks, reason, folder)
    for result in results.values():
        if "unsupported" in result:
            raise UnsupportedCallError(result["unsupported"])
        if "error" in result:
            raise RuntimeError(result["error"])
    if missing:
        _request_stack(ranks[missing[0]], folder / f"{missing[0]}.stack")
        raise _failure(missing[0], ranks, f"returned nothing within {limit:.0f} s", folder)
    return [results[r]["result"] for r in range(len(ranks))]


def _failure(rank: int, ranks: Sequence[BaseProcess], reason: str, folder: Path) -> RuntimeError:
    """The error of a rank that gave no result, with the line it was in if that is known."""
    return RuntimeError(f"rank {rank} of {len(ranks)} {reason}{_current_line(folder / f'{rank}.stack')}")


def _request_stack(rank: BaseProcess, stack: Path) -> None:
    """Let a rank write the stacks of its threads to its file, if it can."""
    if rank.pid is None or not stack.exists():
        return
    os.kill(rank.pid, signal.SIGUSR1)
    end = time.monotonic() + _STACK_TIMEOUT
    while time.monotonic() < end and "\n  File" not in stack.read_text():
        time.sleep(0.01)


def _current_line(stack: Path) -> str:
    """Where the thread was that wrote this file, for a message; empty if it wrote nothing."""
    thread = stack.read_text().rpartition("Current thread")[2] if stack.exists() else ""
    frames = re.findall(r'File "(.*)", line (\d+) in (.*)', thread)[:3]
    calls = ", called by ".join(f"{name} ({file}:{line})" for file, line, name in frames)
    return f" in {calls}" if calls else ""


def _rank(work: Callable[[int], list[Tensor]], rank: int, world: int, folder: str, limit: float) -> None:
    """The main function of one rank's process."""
    gc.freeze()  # a collection would copy the pages of all objects of the parent
    # Not closed: it lives as long as the process. The handlers write even if a library waits or crashes.
    stack = Path(f"{folder}/{rank}.stack").open("w")  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1, stack)
    faulthandler.enable(stack)
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)  # gloo prints connection messages
    os.dup2(devnull, 2)
    torch.set_num_threads(1)  # the parent's threads do not exist after fork
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    if loopback is not None:
        os.environ["GLOO_SOCKET_IFNAME"] = loopback
    try:
        distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world,
            timeout=timedelta(seconds=limit),
        )  # fmt: skip
        with torch.no_grad():
            outcome: dict[str, object] = {"result": [x.contiguous() for x in work(rank)]}
    except UnsupportedCallError as error:
        outcome = {"unsupported": str(error)}
    except Exception as error:  # noqa: BLE001 - reported to the parent
        outcome = {"error": f"{type(error).__name__}: {error}"}
    torch.save(outcome, f"{folder}/{rank}.part")
    Path(f"{folder}/{rank}.part").replace(f"{folder}/{rank}.pt")
    if distributed.is_initialized() and "result" in outcome:
        distributed.barrier()  # a rank that exits early breaks the connection of the others
        distributed.destroy_process_group()
