"""Compare every architecture with an engine, one process for each row; a run that was killed continues."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from orderproof.atlas.engines.engine import RowEngine, RowTask, finished, started_engine
from orderproof.atlas.ports.row import PortRow
from orderproof.atlas.ports.variants import PLAIN, variants
from orderproof.atlas.ports.worker import PortRequest
from orderproof.atlas.store import RowStore
from orderproof.errors import UsageError
from orderproof.models.hf.export_patches import transformers_library
from orderproof.ports.engines.engine import InferenceEngine

POLL_INTERVAL = 0.02  # [s]

Progress = Callable[[Sequence[str], int, int], None]


class PortStore(RowStore[PortRow]):
    """The rows of an atlas of ports."""

    row_class = PortRow
    version_key, version, command = "ports", 1, "orderproof ports"


def language_models() -> tuple[str, ...]:
    """The names of the architectures for which transformers has a causal language model."""
    transformers_library()
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return tuple(sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES))


def encoders() -> tuple[str, ...]:
    """The names of the architectures whose embeddings are compared, and for which there is no language model."""
    transformers_library()
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    return tuple(sorted({*MODEL_FOR_MASKED_LM_MAPPING_NAMES} - {*language_models()}))


def requests(names: Sequence[str], engines: Iterable[InferenceEngine], *, scalings: bool) -> Iterator[PortRequest]:
    """The rows of these architectures, or all: the plain configuration first, then each rope scaling."""
    for engine in engines:
        for name in names or (*language_models(), *(encoders() if engine.encoder_abilities else ())):
            for variant in variants(name) if scalings else (PLAIN,):
                yield PortRequest(name, variant, engine)


def update_store(
    wanted: Sequence[PortRequest],
    store: PortStore,
    progress: Progress,
    *,
    engine: str = "local",
    workers: int | None = None,
) -> list[PortRow]:
    """Add the missing rows to the store; all rows of the request, in order.

    Variants of an architecture that the inference engine does not have, or that it refuses, are left out. `engine` and
    `workers` say where rows are made, and how many at a time. Raises `UsageError`; a KeyboardInterrupt stops unfinished
    rows first.
    """
    if workers is not None and workers <= 0:
        raise UsageError(f"expected --workers above 0; got {workers}")
    with started_engine(engine, PortRequest, workers=workers, close_in_child=store.close) as started:
        plain = [request for request in wanted if request.variant == PLAIN]
        _make(plain, store, started, lambda running, done: progress(running, done, len(wanted)))
        missing = {
            (request.engine.name, request.name)
            for request in plain
            if not store.rows[request.empty_row.key].is_compared
        }
        asked = [one for one in wanted if one.variant == PLAIN or (one.engine.name, one.name) not in missing]
        others = [request for request in asked if request.variant != PLAIN]
        before = len(wanted) - len(others)
        _make(others, store, started, lambda running, done: progress(running, before + done, len(wanted)))
    progress([], len(wanted), len(wanted))
    return [store.rows[request.empty_row.key] for request in asked]


def _make(
    requests: Sequence[PortRequest], store: PortStore, engine: RowEngine[PortRow],
    progress: Callable[[Sequence[str], int], None],
) -> None:  # fmt: skip
    """Add those of some rows that are missing."""
    queue = deque(request for request in requests if request.empty_row.key not in store.rows)
    running: list[RowTask[PortRow]] = []
    try:
        while queue or running:
            while queue and len(running) < engine.workers:
                request = queue.popleft().after([*store.rows.values()])
                running.append(engine.start(request))
            progress([task.title for task in running], len(requests) - len(queue) - len(running))
            time.sleep(POLL_INTERVAL)
            for row in finished(running):
                store.append(row)
    finally:
        for task in running:
            task.stop()
