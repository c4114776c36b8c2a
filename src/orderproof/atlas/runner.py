"""Audits a tiny version of every architecture that transformers knows, one process each.

    names -> those without a row in the store -> one forked process each -> a row, written to disk at once

A run that is killed loses only the architectures it was auditing; the next run with the same store audits them again.
A finished row is repeated only if it failed for time or memory and the limit is higher now.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from orderproof.atlas import row as atlas_row
from orderproof.atlas.document import AtlasDocument, build_document
from orderproof.atlas.row import AtlasRow
from orderproof.atlas.store import AtlasStore
from orderproof.atlas.worker import AtlasWorker, Limits, frozen_gc
from orderproof.auditing.api import audit
from orderproof.errors import UsageError
from orderproof.models.hf.architectures import known_architectures
from orderproof.signals import sigint_blocked
from orderproof.subject_spec import ARCH_PREFIX, unknown_architecture

POLL_INTERVAL = 0.1  # [s]

ProgressCallback = Callable[[Sequence[str], int, int], None]


@dataclass(frozen=True)
class AtlasRequest:
    """The architectures of a run, the attention backend and the limits."""

    names: tuple[str, ...]
    attention: str | None = None
    workers: int = 1
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for option, value in (
            ("--workers", self.workers), ("--timeout", self.limits.seconds), ("--memory", self.limits.memory_gib),
        ):  # fmt: skip
            if value <= 0:
                raise UsageError(f"expected {option} above 0; got {value:g}")


def select_architectures(names: Iterable[str]) -> tuple[str, ...]:
    """The architectures with these names; all if there are none. Raises `UsageError` for an unknown one."""
    known = known_architectures()
    selected = tuple(dict.fromkeys(name.removeprefix(ARCH_PREFIX) for name in names))
    for name in selected:
        if name not in known:
            raise unknown_architecture(name, known)
    return tuple(sorted(selected)) or known


def warm_up() -> None:
    """Import what every worker needs, once. This process and its workers compute on one thread from now on."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    known_architectures()
    import transformers.masking_utils
    import transformers.modeling_utils  # noqa: F401

    audit(nn.Linear(4, 4), inputs=(torch.zeros(2, 7, 4),))  # the first export imports many modules


def update_store(
    request: AtlasRequest, store: AtlasStore, progress: ProgressCallback = lambda running, done, total: None
) -> None:
    """Add the missing rows to the store. Raises `UsageError`; a KeyboardInterrupt stops the workers first."""
    queue: deque[str] = deque()
    known: set[str] = set()
    for name in request.names:
        _enqueue(name, known, queue, request, store)
        _enqueue(_canonical_name(name, request, store), known, queue, request, store)
    if not queue:
        return
    warm_up()
    running: list[AtlasWorker] = []
    with frozen_gc():
        try:
            while queue or running:
                while queue and len(running) < request.workers:
                    with sigint_blocked():
                        running.append(_start(queue.popleft(), request, store))
                progress(
                    [worker.empty_row.name for worker in running], len(known) - len(queue) - len(running), len(known)
                )
                time.sleep(POLL_INTERVAL)
                for row in _finished(running, store):
                    _enqueue(row.alias_of or row.name, known, queue, request, store)
        finally:
            for worker in running:
                worker.stop()
    progress([], len(known), len(known))


def _finished(running: list[AtlasWorker], store: AtlasStore) -> Iterator[AtlasRow]:
    """The rows of the workers that have ended, each written to disk before it is returned."""
    for worker in [*running]:
        with sigint_blocked():
            row = worker.poll()
            if row is None:
                continue
            running.remove(worker)
            store.append(row)
        yield row


def _enqueue(name: str, known: set[str], queue: deque[str], request: AtlasRequest, store: AtlasStore) -> None:
    """Add a name to the queue, once, unless its row is finished."""
    if name not in known:
        known.add(name)
        if not _is_finished(name, request, store):
            queue.append(name)


def _start(name: str, request: AtlasRequest, store: AtlasStore) -> AtlasWorker:
    empty_row = atlas_row.empty_row(name, request.attention)
    limits = request.limits

    def make_row() -> AtlasRow:
        return atlas_row.make_row(name, request.attention, limits.law_seconds)

    return AtlasWorker(empty_row, make_row, limits, store.close)


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
