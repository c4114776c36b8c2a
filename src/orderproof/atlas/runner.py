"""Audits a tiny version of every architecture that transformers knows, one process each.

    names -> those without a row in the store -> one process each, by an engine -> a row, written to disk at once

A run that is killed loses only the architectures it was auditing; the next run with the same store audits them again.
A finished row is repeated only if it failed for time or memory and the limit is higher now.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from orderproof.atlas import row as atlas_row
from orderproof.atlas.document import AtlasDocument, build_document
from orderproof.atlas.engines.engine import RowTask, finished, started_engine
from orderproof.atlas.row import AtlasRow
from orderproof.atlas.store import AtlasStore
from orderproof.atlas.worker import Limits, RowRequest
from orderproof.errors import UsageError
from orderproof.models.hf.architectures import known_architectures
from orderproof.signals import sigint_blocked
from orderproof.subject_spec import ARCH_PREFIX, unknown_architecture

POLL_INTERVAL = 0.02  # [s]

ProgressCallback = Callable[[Sequence[str], int, int], None]


@dataclass(frozen=True)
class AtlasRequest:
    """The architectures of a run, the attention backend, the engine and the limits."""

    names: tuple[str, ...]
    attention: str | None = None
    workers: int | None = None  # by default of the engine
    engine: str = "local"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for option, value in (
            ("--workers", self.workers), ("--timeout", self.limits.seconds), ("--memory", self.limits.memory_gib),
        ):  # fmt: skip
            if value is not None and value <= 0:
                raise UsageError(f"expected {option} above 0; got {value:g}")


def select_architectures(names: Iterable[str]) -> tuple[str, ...]:
    """The architectures with these names; all if there are none. Raises `UsageError` for an unknown one."""
    known = known_architectures()
    selected = tuple(dict.fromkeys(name.removeprefix(ARCH_PREFIX) for name in names))
    for name in selected:
        if name not in known:
            raise unknown_architecture(name, known)
    return tuple(sorted(selected)) or known


def update_store(
    request: AtlasRequest, store: AtlasStore, progress: ProgressCallback = lambda running, done, total: None
) -> None:
    """Add the missing rows to the store. Raises `UsageError`; a KeyboardInterrupt stops unfinished rows first."""
    queue: deque[str] = deque()
    known: set[str] = set()
    for name in request.names:
        _enqueue(name, known, queue, request, store)
        _enqueue(_canonical_name(name, request, store), known, queue, request, store)
    if not queue:
        return
    running: list[RowTask[AtlasRow]] = []
    with started_engine(request.engine, RowRequest, workers=request.workers, close_in_child=store.close) as engine:
        try:
            while queue or running:
                while queue and len(running) < engine.workers:
                    with sigint_blocked():
                        running.append(engine.start(RowRequest(
                            name=queue.popleft(), attention=request.attention, limits=request.limits,
                        )))  # fmt: skip
                progress([task.title for task in running], len(known) - len(queue) - len(running), len(known))
                time.sleep(POLL_INTERVAL)
                for row in finished(running):
                    store.append(row)  # at once
                    _enqueue(row.alias_of or row.name, known, queue, request, store)
        finally:
            for task in running:
                task.stop()
    progress([], len(known), len(known))


def _enqueue(name: str, known: set[str], queue: deque[str], request: AtlasRequest, store: AtlasStore) -> None:
    """Add a name to the queue, once, unless its row is finished."""
    if name not in known:
        known.add(name)
        if not _is_finished(name, request, store):
            queue.append(name)


def _row(name: str, request: AtlasRequest, store: AtlasStore) -> AtlasRow | None:
    return store.rows.get(atlas_row.empty_row(name, request.attention).key)


def _canonical_name(name: str, request: AtlasRequest, store: AtlasStore) -> str:
    row = _row(name, request, store)
    return row.alias_of if row is not None and row.alias_of else name


def _is_finished(name: str, request: AtlasRequest, store: AtlasStore) -> bool:
    row = _row(name, request, store)
    if row is None:
        return False
    if row.failure is None or row.failure.limit is None:
        return True
    now = request.limits.seconds if row.failure.category == "timeout" else request.limits.memory_gib
    return now <= row.failure.limit


def requested_document(
    request: AtlasRequest, store: AtlasStore, *, date: str | None = None, machine: str = ""
) -> AtlasDocument:
    """The finished rows of a request, and the rows that they are an alias of, as a document.

    `date`: that of the last row by default.
    """
    names = {*request.names, *(_canonical_name(name, request, store) for name in request.names)}
    rows = [row for name in sorted(names) if (row := _row(name, request, store)) is not None]
    last = max((row.finished_on for row in rows), default="no row yet")
    return build_document(rows, requested=len(names), date=date or last, machine=machine)
