"""The atlas: every architecture that transformers knows, audited tiny, one process each.

    names -> those without a row in the store -> a forked child each -> a row, on the disk at once

A run that is killed loses the architectures it was at; started again it goes on with them. A row is asked for
again only where it failed for time or memory and more is given now.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from orderproof.auditing import atlas_rows
from orderproof.auditing.api import audit
from orderproof.auditing.atlas_child import Child, Limits, settled, start, uninterrupted
from orderproof.auditing.atlas_rows import SCHEMA, Row
from orderproof.auditing.atlas_store import Store
from orderproof.errors import UsageError
from orderproof.subjects.architectures import PREFIX, known_architectures, near

PAUSE = 0.1  # [s] between two looks at the children

Tell = Callable[[Sequence[str], int, int], None]


@dataclass(frozen=True)
class Asked:
    """What is asked of a run."""

    names: tuple[str, ...]
    attention: str | None = None
    workers: int = 1
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for option, value in (
            ("--workers", self.workers), ("--timeout", self.limits.seconds), ("--memory", self.limits.memory),
        ):  # fmt: skip
            if value <= 0:
                raise UsageError(f"expected {option} above 0; got {value:g}")


def wanted(names: Iterable[str]) -> tuple[str, ...]:
    """The architectures named, all where none is. Raises `UsageError` for one that transformers does not know."""
    known = known_architectures()
    given = tuple(dict.fromkeys(name.removeprefix(PREFIX) for name in names))
    for name in given:
        if name not in known:
            raise UsageError(f"expected the name of an architecture of transformers; got {name!r}{near(name, known)}")
    return tuple(sorted(given)) or known


def warm_up() -> None:
    """Import what every child needs, once. Children compute on one thread, and so does this process from now on."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    known_architectures()
    import transformers.masking_utils
    import transformers.modeling_utils  # noqa: F401

    audit(nn.Linear(4, 4), inputs=(torch.zeros(2, 7, 4),))  # the exporter imports much of itself at its first use


def run(asked: Asked, store: Store, tell: Tell = lambda running, done, total: None) -> None:
    """Bring the store up to date. Raises `UsageError`, and KeyboardInterrupt with every child stopped."""
    queue: deque[str] = deque()
    known: set[str] = set()
    for name in asked.names:
        _follow(name, known, queue, asked, store)
        _follow(_twin(name, asked, store), known, queue, asked, store)
    if not queue:
        return
    warm_up()
    running: list[Child] = []
    with settled():
        try:
            while queue or running:
                while queue and len(running) < asked.workers:
                    with uninterrupted():
                        running.append(_started(queue.popleft(), asked, store))
                tell([child.blank.name for child in running], len(known) - len(queue) - len(running), len(known))
                time.sleep(PAUSE)
                for row in _finished(running, store):
                    _follow(row.same_as or row.name, known, queue, asked, store)
        finally:
            for child in running:
                child.stop()
    tell([], len(known), len(known))


def _finished(running: list[Child], store: Store) -> Iterator[Row]:
    """The rows of the children that are done, each on the disk before it is seen."""
    for child in [*running]:
        with uninterrupted():
            row = child.row()
            if row is None:
                continue
            running.remove(child)
            store.append(row)
        yield row


def _follow(name: str, known: set[str], queue: deque[str], asked: Asked, store: Store) -> None:
    """Take a name in, once; a row that says only `the same as` brings in the name it refers to."""
    if name not in known:
        known.add(name)
        if not _settled(name, asked, store):
            queue.append(name)


def _started(name: str, asked: Asked, store: Store) -> Child:
    blank = atlas_rows.blank(name, asked.attention)
    return start(blank, lambda: atlas_rows.make_row(name, asked.attention), asked.limits, store.close)


def _row(name: str, asked: Asked, store: Store) -> Row | None:
    return store.rows.get(atlas_rows.blank(name, asked.attention).key)


def _twin(name: str, asked: Asked, store: Store) -> str:
    row = _row(name, asked, store)
    return row.same_as if row is not None and row.same_as else name


def _settled(name: str, asked: Asked, store: Store) -> bool:
    row = _row(name, asked, store)
    if row is None:
        return False
    if row.failed is None or row.failed.limit is None:
        return True
    now = asked.limits.seconds if row.failed.category == "timeout" else asked.limits.memory
    return now <= row.failed.limit


def rows_of(asked: Asked, store: Store) -> tuple[tuple[Row, ...], int]:
    """The rows that answer what was asked, by name, with those that they refer to; and how many there are to be."""
    names = {*asked.names, *(_twin(name, asked, store) for name in asked.names)}
    found = (_row(name, asked, store) for name in sorted(names))
    return tuple(row for row in found if row is not None), len(names)


def to_json(rows: Sequence[Row], *, asked: int, date: str, machine: str) -> str:
    """The rows as one JSON document, one row a line."""
    used = Counter(name for row in rows for name in row.operators)
    operators = dict(sorted(used.items(), key=lambda item: (-item[1], item[0])))
    head = {
        "atlas": SCHEMA, "date": date, "machine": machine, "asked": asked, "finished": len(rows),
        "operators": operators,
    }  # fmt: skip
    lines = ",\n".join(row.model_copy(update={"operators": ()}).to_line() for row in rows)
    return json.dumps(head)[:-1] + ', "rows": [\n' + lines + ("\n" if rows else "") + "]}\n"
