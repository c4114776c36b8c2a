"""The interface of an engine of the atlas, which makes rows, and the choice of one for `--engine NAME[:TARGET]`.

An engine is one file of this folder. It defines `started`, a context manager from the target (None without one), the
number of workers (None for the default of the engine) and a function that closes, in a fork, the files of the caller.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, cast

from orderproof.atlas.row import AtlasRow
from orderproof.atlas.worker import RowRequest
from orderproof.errors import UsageError
from orderproof.optional_packages import install_command
from orderproof.registry import lookup


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


def engine_modules() -> dict[str, str]:
    """The module of each engine, by the name of the engine."""
    package = importlib.import_module("orderproof.atlas.engines")
    files = [info.name for info in pkgutil.iter_modules(package.__path__) if info.name != "engine"]
    return {name.removesuffix("_engine"): f"{package.__name__}.{name}" for name in files}


def started_engine(name: str, *, workers: int | None, close_in_child: Callable[[], None]) -> StartedEngine:
    """The engine `NAME` or `NAME:TARGET`. Raises `UsageError` for an unknown name or a missing package."""
    kind, _, target = name.partition(":")
    module = lookup(kind, engine_modules(), "--engine")
    try:
        engine = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(f"--engine {kind} needs the package {error.name}: {install_command(kind)}") from error
    return cast("StartedEngine", engine.started(target or None, workers, close_in_child))
