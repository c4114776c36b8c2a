"""Rows in forked processes of this one, which imports the libraries once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orderproof.atlas import worker
from orderproof.atlas.engines.engine import RowEngine
from orderproof.atlas.worker import frozen_gc, start_row
from orderproof.errors import UsageError


@contextmanager
def started(target: str | None, workers: int | None, close_in_child: Callable[[], None]) -> Iterator[RowEngine]:
    """One worker by default. Raises `UsageError` for a target."""
    if target is not None:
        raise UsageError(f"expected --engine local; got --engine local:{target}")
    worker.warm_up()
    with frozen_gc():
        yield RowEngine(workers or 1, lambda request: start_row(request, close_in_child))
