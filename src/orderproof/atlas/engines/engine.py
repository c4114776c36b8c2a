"""The interface of an engine of an atlas, which makes rows, and the choice of one for `--engine NAME[:TARGET]`.

An engine is one file of this folder. It defines `started`, a context manager from the class of the requests, the target
(None without one), the number of workers (None for the default of the engine) and a function that closes, in a fork,
the files of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from orderproof.engine_files import import_engine
from orderproof.signals import sigint_blocked

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class RowTask(Protocol[R_co]):
    """A row in the making."""

    @property
    def title(self) -> str:
        """The row in a line about progress."""

    def poll(self) -> R_co | None:
        """The row, once it is made; None before."""

    def stop(self) -> None:
        """Stop what makes it, and discard it."""


class Request(Protocol[R_co]):
    """All that determines a row; a class of its own for each atlas."""

    keeps_process: ClassVar[bool]
    """Forks of one process share another process that one of them at a time may use."""

    @classmethod
    def warm_up(cls) -> None:
        """Import and compute once what every fork needs."""

    @classmethod
    def from_line(cls, line: str) -> Self:
        """The request of `to_line`."""

    def to_line(self) -> str:
        """The request as one line of JSON."""

    def start(self, close_in_child: Callable[[], None]) -> RowTask[R_co]:
        """Fork a process that makes the row; `close_in_child` closes files that only the parent should hold."""

    def row_of(self, line: str) -> R_co:
        """The row of one line of JSON."""

    def died(self, reason: str) -> R_co:
        """The row, if what makes it dies again and again."""

    def crashed(self, reason: str) -> R_co:
        """The row, if what makes it raises."""

    @property
    def title(self) -> str:
        """The row in a line about progress."""


@dataclass(frozen=True)
class RowEngine(Generic[R]):
    """A started engine: the number of rows that it makes at a time, and the function that starts one."""

    workers: int
    start: Callable[[Request[R]], RowTask[R]]


def finished(running: list[RowTask[R]]) -> Iterator[R]:
    """The rows that are made; their tasks are no longer running. An interruption waits until one is kept."""
    for task in [*running]:
        with sigint_blocked():
            if (row := task.poll()) is not None:
                running.remove(task)
                yield row


def started_engine(
    name: str, kind: type[Request[R]], *, workers: int | None, close_in_child: Callable[[], None]
) -> AbstractContextManager[RowEngine[R]]:
    """The engine `NAME` or `NAME:TARGET`. Raises `UsageError` for an unknown name or a missing package."""
    module, target = import_engine(name, "orderproof.atlas.engines", {"engine"})
    engine: AbstractContextManager[RowEngine[R]] = module.started(kind, target, workers, close_in_child)
    return engine
