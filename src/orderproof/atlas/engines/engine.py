"""The interface of an engine of the atlas, which makes rows, and the choice of one for `--engine NAME[:TARGET]`.

An engine is one file of this folder. It defines `started`, a context manager from the target (None without one), the
number of workers (None for the default of the engine) and a function that closes, in a fork, the files of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from orderproof.atlas.row import AtlasRow
from orderproof.atlas.worker import RowRequest
from orderproof.engine_files import import_engine


class RowTask(Protocol):
    """A row in the making."""

    empty_row: AtlasRow

    def poll(self) -> AtlasRow | None:
        """The row, once it is made; None before."""

    def stop(self) -> None:
        """Stop what makes it, and discard it."""


@dataclass(frozen=True)
class RowEngine:
    """A started engine: the number of rows that it makes at a time, and the function that starts one."""

    workers: int
    start: Callable[[RowRequest], RowTask]


StartedEngine = AbstractContextManager[RowEngine]


def started_engine(name: str, *, workers: int | None, close_in_child: Callable[[], None]) -> StartedEngine:
    """The engine `NAME` or `NAME:TARGET`. Raises `UsageError` for an unknown name or a missing package."""
    module, target = import_engine(name, "orderproof.atlas.engines", {"engine"})
    engine: StartedEngine = module.started(target, workers, close_in_child)
    return engine
