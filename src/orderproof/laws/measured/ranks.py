"""The same work on several ranks: forked processes that talk over the loopback and leave nothing behind."""

from __future__ import annotations

import multiprocessing
import os
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

from orderproof.errors import Unsupported

LIMIT = 30.0  # [s] for all ranks together, unless said otherwise


def on_ranks(work: Callable[[int], list[Tensor]], world: int, *, limit: float = LIMIT) -> list[list[Tensor]]:
    """What each rank gives within ``limit`` [s], where every one of them runs ``work`` with its number.

    Raises `Unsupported` where processes cannot be forked, or where the work does; `RuntimeError` where a rank fails.
    """
    if "fork" not in multiprocessing.get_all_start_methods() or not distributed.is_gloo_available():
        raise Unsupported("ranks cannot be started here: that takes fork and gloo")
    forking = multiprocessing.get_context("fork")
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the ranks use none of them
        ranks = [forking.Process(target=_rank, args=(work, r, world, folder, limit), daemon=True) for r in range(world)]
        try:
            for rank in ranks:
                rank.start()
            _wait(ranks, Path(folder), limit)
            return _all_given(Path(folder), world, limit)
        finally:
            for rank in ranks:
                if rank.is_alive():
                    rank.kill()
                rank.join()
                rank.close()


def _wait(ranks: Sequence[BaseProcess], folder: Path, limit: float) -> None:
    """Until all have ended, one has failed (the others would wait for it), or time is up."""
    end = time.monotonic() + limit
    running = list(ranks)
    while running and time.monotonic() < end:
        connection.wait([rank.sentinel for rank in running], end - time.monotonic())
        running = [rank for rank in running if rank.is_alive()]
        if any("made" not in torch.load(file, weights_only=True) for file in folder.glob("*.pt")):
            return


def _all_given(folder: Path, world: int, limit: float) -> list[list[Tensor]]:
    """What the ranks left. The first to fail says why: it cuts the others off."""
    files = sorted(folder.glob("*.pt"), key=lambda file: file.stat().st_mtime_ns)
    given = {int(file.stem): torch.load(file, weights_only=True) for file in files}
    for one in given.values():
        if "unsupported" in one:
            raise Unsupported(one["unsupported"])
        if "error" in one:
            raise RuntimeError(one["error"])
    silent = [rank for rank in range(world) if rank not in given]
    if silent:
        raise RuntimeError(f"rank {silent[0]} of {world} gave nothing within {limit:.0f} s")
    return [given[rank]["made"] for rank in range(world)]


def _rank(work: Callable[[int], list[Tensor]], rank: int, world: int, folder: str, limit: float) -> None:
    """One rank, in its own process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # gloo says on the terminal that it is connected
    os.dup2(nowhere, 2)
    torch.set_num_threads(1)  # the threads of the process that was forked are not here
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    if loopback is not None:
        os.environ["GLOO_SOCKET_IFNAME"] = loopback
    try:
        distributed.init_process_group(
            "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world,
            timeout=timedelta(seconds=limit),
        )  # fmt: skip
        with torch.no_grad():
            given: dict[str, object] = {"made": [x.contiguous() for x in work(rank)]}
    except Unsupported as error:
        given = {"unsupported": str(error)}
    except Exception as error:  # noqa: BLE001 - told to the process that waits
        given = {"error": f"{type(error).__name__}: {error}"}
    torch.save(given, f"{folder}/{rank}.part")
    Path(f"{folder}/{rank}.part").replace(f"{folder}/{rank}.pt")
    if distributed.is_initialized() and "made" in given:
        distributed.barrier()  # a rank that leaves early breaks the other's connection
        distributed.destroy_process_group()
