"""Compare every architecture with an engine, one process for each row; a run that was killed continues."""

from __future__ import annotations

import os
import select
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch

from orderproof.atlas.ports.row import PortRow, law_result, today
from orderproof.atlas.ports.variants import PLAIN, variants
from orderproof.atlas.row import one_line
from orderproof.atlas.store import RowStore
from orderproof.atlas.worker import frozen_gc
from orderproof.auditing.port_audit import engine_findings
from orderproof.errors import SubjectError, failure_reason
from orderproof.forked_process import ForkedProcess, exit_description
from orderproof.laws import port_laws
from orderproof.models.hf.export_patches import transformers_library
from orderproof.ports.engine_process import EngineLimits
from orderproof.ports.engines.engine import EngineError, InferenceEngine
from orderproof.ports.load import tiny_reference
from orderproof.subject_spec import ARCH_PREFIX

ROW_SECONDS = 480.0  # [s] for one row; only an engine that hangs takes as long
CALL_SECONDS = 120.0  # [s] for a call: a row may have a few that hang
SKIPPED_IN_VARIANTS = (
    "same_far_positions", "same_greedy_tokens", "same_chunked_prefill", "same_padded_batch", "same_shared_prefix",
    "same_cached_prompt", "same_after_preemption",
)  # fmt: skip

_NOT_VALUES = ("architectures", "dtype", "transformers_version")

Progress = Callable[[Sequence[str], int, int], None]


class PortStore(RowStore[PortRow]):
    """The rows of an atlas of ports."""

    row_class = PortRow
    version_key, version, command = "ports", 1, "orderproof ports"


@dataclass(frozen=True)
class RowRequest:
    """One row to compute."""

    name: str
    variant: str
    engine: InferenceEngine

    def empty_row(self) -> PortRow:
        """The row with its key only."""
        return PortRow(
            name=self.name, variant=self.variant, engine=self.engine.name, engine_version=self.engine.version,
            transformers=metadata.version("transformers"),
        )  # fmt: skip


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


def requests(names: Sequence[str], engines: Iterable[InferenceEngine], *, scalings: bool) -> Iterator[RowRequest]:
    """The rows of these architectures, or all: the plain configuration first, then each rope scaling."""
    for engine in engines:
        for name in names or (*language_models(), *(encoders() if engine.encoder_abilities else ())):
            for variant in variants(name) if scalings else (PLAIN,):
                yield RowRequest(name, variant, engine)


def update_store(wanted: Sequence[RowRequest], store: PortStore, progress: Progress) -> list[PortRow]:
    """Add the missing rows to the store; all rows of the request, in order.

    Variants of an architecture that the engine does not have, or that it refuses, are left out.
    """
    torch.set_num_threads(1)
    rows: list[PortRow] = []
    left_out: set[tuple[str, str]] = set()
    with frozen_gc():
        for index, request in enumerate(wanted):
            pair = (request.engine.name, request.name)
            if pair in left_out:
                continue
            progress([f"{request.name} ({request.engine.name}, {request.variant})"], index, len(wanted))
            empty = request.empty_row()
            row = store.rows.get(empty.key)
            if row is None:
                if request.engine.has_environment:  # one process for all rows
                    with suppress(EngineError):  # each row says why it is not there
                        request.engine.prepare()
                row = _row_in_process(request, empty, list(store.rows.values()))
                store.append(row)
            rows.append(row)
            if request.variant == PLAIN and not row.is_compared:
                left_out.add(pair)
    progress([], len(wanted), len(wanted))
    return rows


def _row_in_process(request: RowRequest, empty: PortRow, earlier: Sequence[PortRow]) -> PortRow:
    """The row, computed in a process of its own."""
    with tempfile.TemporaryFile() as result:
        read, write = os.pipe()

        def work() -> None:
            os.close(read)
            row = make_row(request, empty, earlier)
            result.write(row.to_line().encode())
            result.flush()
            os.close(write)

        child = ForkedProcess(work)
        os.close(write)
        began = time.monotonic()
        try:
            done = bool(select.select([read], [], [], ROW_SECONDS)[0])
            reason = "" if done else f"not done after {ROW_SECONDS:g} s"
            status = child.wait() if done else 0
        finally:
            os.close(read)
            child.stop()
        used = child.usage.ru_utime + child.usage.ru_stime if child.usage is not None else time.monotonic() - began
        result.seek(0)
        text = result.read()
    finished = {"processor_seconds": round(used, 2), "finished_on": today()}
    if reason or not text:
        return empty.model_copy(update={"failure": reason or f"its process {exit_description(status)}", **finished})
    return PortRow.model_validate_json(text).model_copy(update=finished)


def make_row(request: RowRequest, empty: PortRow, earlier: Sequence[PortRow] = ()) -> PortRow:
    """The row of one request: that of an earlier one if its checkpoint is the same. Never raises."""
    try:
        request.engine.prepare()
        if not request.engine.knows(request.name):
            return empty.model_copy(update={"known": False})
        width = request.engine.head_width
        values = variants(request.name, width)[request.variant]
        embeds = bool(request.engine.encoder_abilities)
        reference = tiny_reference(ARCH_PREFIX + request.name, values=values, head_width=width, may_be_encoder=embeds)
        if (same := _same_checkpoint(reference.config, empty, earlier)) is not None:
            return same.model_copy(update={"name": request.name})
        plain = request.variant == PLAIN
        laws = [law for law in port_laws() if plain or law.name not in SKIPPED_IN_VARIANTS]
        findings = engine_findings(reference, request.engine, laws, {}, EngineLimits(seconds=CALL_SECONDS))
    except SubjectError as error:
        return empty.model_copy(update={"failure": one_line(str(error))})
    except Exception as error:  # noqa: BLE001 - third-party code: anything may come
        return empty.model_copy(update={"failure": one_line(failure_reason(error))})
    known = any(finding.verdict != "not_applicable" for finding in findings)
    evidence = [finding.port for finding in findings if finding.port is not None]
    return empty.model_copy(
        update={
            "known": known, "window": reference.port_model.window, "context": reference.port_model.context,
            "model_type": reference.config.model_type, "values": _changed_values(reference.config),
            "older_keys": next((each.older_keys for each in evidence if each.older_keys), ()),
            "needs_older_keys": any(each.needs_older_keys for each in evidence),
            "engine_seconds": max((each.seconds for each in evidence), default=0.0),
            "import_seconds": max((each.import_seconds for each in evidence), default=0.0),
            "laws": tuple(law_result(finding) for finding in findings if finding.verdict != "not_applicable"),
        }
    )  # fmt: skip


def _same_checkpoint(config: Any, empty: PortRow, earlier: Sequence[PortRow]) -> PortRow | None:
    """The row of the same configuration, as the text models of many architectures are those of another one.

    Weights depend on it and on the seed only.
    """
    wanted = (config.model_type, _changed_values(config), *empty.key[1:])
    done = (row for row in earlier if row.laws and (row.model_type, row.values, *row.key[1:]) == wanted)
    return next((row for row in done if not any("not done after" in law.reason for law in row.laws)), None)


def _changed_values(config: Any) -> dict[str, Any]:
    """The values of a configuration that differ from the default of its class and can be written as JSON."""
    usual = type(config)().to_dict()
    changed = {key: value for key, value in config.to_dict().items() if key not in usual or usual[key] != value}
    plain = (str, int, float, bool, list, dict, type(None))
    return {
        key: value
        for key, value in changed.items()
        if isinstance(value, plain) and not key.startswith("_") and key not in _NOT_VALUES
    }
