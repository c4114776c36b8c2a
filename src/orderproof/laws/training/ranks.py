"""Processes that share the calls of a loss, as ranks of a gloo group: they are forked, and give back plain values."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.distributed.nn.functional  # before there is a group: its functions take the group of their import
from torch import distributed
from torch.distributed.distributed_c10d import GroupMember

from orderproof import forked_process
from orderproof.errors import UnsupportedCallError, first_line

LONGEST = timedelta(seconds=60)  # of one exchange between ranks
_POLL = 0.005  # [s]


@contextmanager
def group_questions() -> Iterator[list[str]]:
    """A block in which code asks if there is a process group; the files that asked, so far."""
    files: list[str] = []
    kind: Any = type(GroupMember)
    plain = vars(kind)["WORLD"]

    def world(member: type) -> Any:
        frame = sys._getframe(1)
        while "torch/distributed" in frame.f_code.co_filename and frame.f_back is not None:
            frame = frame.f_back
        if "importlib" not in (file := frame.f_code.co_filename):  # a default value of a function
            files.append(file)
        return plain.fget(member)

    kind.WORLD = property(world, plain.fset)
    try:
        yield files
    finally:
        kind.WORLD = plain


def on_ranks(count: int, work: Callable[[], Any]) -> list[Any]:
    """The results of `work` in a process for each rank; what it returns is written as JSON.

    Raises `UnsupportedCallError` for what one of them raises, and where processes cannot be forked.
    """
    if not forked_process.can_fork() or not distributed.is_available() or distributed.is_initialized():
        raise UnsupportedCallError(
            "its ranks cannot be forked here: expected Linux, no GPU in use and no process group"
        )
    with TemporaryDirectory() as place:
        folder = Path(place)
        ranks = [forked_process.ForkedProcess(_rank(folder, rank, count, work)) for rank in range(count)]
        try:
            return _results(folder, ranks)
        finally:
            for rank in ranks:
                rank.stop()


@contextmanager
def alone() -> Iterator[None]:
    """In a rank: a block in which it is the only one of its group."""
    everyone = GroupMember.WORLD
    GroupMember.WORLD = _own[0]
    try:
        yield
    finally:
        GroupMember.WORLD = everyone


_own: list[Any] = []  # in a rank: the group that it is alone in


def _rank(folder: Path, rank: int, count: int, work: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        try:
            store = distributed.FileStore(str(folder / "store"), count)  # type: ignore[attr-defined]
            distributed.init_process_group("gloo", store=store, rank=rank, world_size=count, timeout=LONGEST)
            groups = [distributed.new_group([each]) for each in range(count)]  # all ranks make all groups
            _own[:] = [groups[rank]]
            result = {"value": work()}
        except Exception as error:  # noqa: BLE001 - gloo, or the code of the user
            result = {"failure": str(error) if isinstance(error, UnsupportedCallError) else first_line(error)}
        path = folder / f"{rank}.json"
        path.with_suffix(".part").write_text(json.dumps(result), encoding="utf-8")
        path.with_suffix(".part").rename(path)

    return run


def _results(folder: Path, ranks: list[forked_process.ForkedProcess]) -> list[Any]:
    """The values of all ranks, as soon as they are there or one of them has failed."""
    paths = [folder / f"{rank}.json" for rank in range(len(ranks))]
    while True:
        ended = [os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) for rank in ranks]
        found = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
        failures = [each["failure"] for each in found if "failure" in each]
        if failures:
            raise UnsupportedCallError(f"a rank of {len(ranks)} failed: {failures[0]}")
        if len(found) == len(ranks):
            return [each["value"] for each in found]
        if any(end is not None and not path.exists() for end, path in zip(ended, paths, strict=True)):
            raise UnsupportedCallError(f"a rank of {len(ranks)} ended its process")
        time.sleep(_POLL)
