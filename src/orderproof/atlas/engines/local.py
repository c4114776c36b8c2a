"""Rows in forked processes of this one, which imports the libraries once.

Where a request keeps a process for all rows, as an inference engine in an environment of its own, each worker beyond
the first is a row server, which has one to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from orderproof.atlas.engines.engine import Request, RowEngine, RowTask
from orderproof.atlas.row_server import RowClient
from orderproof.errors import UsageError
from orderproof.forked_process import frozen_gc

R = TypeVar("R")


class ServedRow(RowTask[R]):
    """A row that a row server makes."""

    def __init__(self, request: Request[R], idle: list[RowClient]) -> None:
        """Ask one of the servers that have nothing to do, or start another."""
        self._request, self._idle = request, idle
        self._client = idle.pop() if idle else RowClient(type(request))
        self._client.ask(request.to_line())

    @property
    def title(self) -> str:
        """The row in a line about progress."""
        return self._request.title

    def poll(self) -> R | None:
        """The row, once the server has made it; None before."""
        if not self._client.has_answer():
            return None
        try:
            row = self._request.row_of(self._client.answer())
        except RuntimeError as error:  # the next row starts another server
            return self._request.crashed(str(error))
        self._idle.append(self._client)
        return row

    def stop(self) -> None:
        """End the server."""
        self._client.stop()


@contextmanager
def started(
    kind: type[Request[R]], target: str | None, workers: int | None, close_in_child: Callable[[], None]
) -> Iterator[RowEngine[R]]:
    """One worker by default. Raises `UsageError` for a target."""
    if target is not None:
        raise UsageError(f"expected --engine local; got --engine local:{target}")
    kind.warm_up()
    idle: list[RowClient] = []
    try:
        with frozen_gc():
            if kind.keeps_process and (workers or 1) > 1:
                yield RowEngine(workers or 1, lambda request: ServedRow(request, idle))
            else:
                yield RowEngine(workers or 1, lambda request: request.start(close_in_child))
    finally:
        for client in idle:
            client.stop()
