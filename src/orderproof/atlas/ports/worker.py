"""A forked process that compares one architecture with an engine, with a limit on its time."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, ClassVar

import torch

from orderproof.atlas.ports.row import PortRow, law_result, today
from orderproof.atlas.ports.variants import PLAIN, variants
from orderproof.atlas.row import one_line
from orderproof.auditing.port_audit import engine_findings
from orderproof.errors import SubjectError, failure_reason
from orderproof.forked_process import ForkedProcess, exit_description
from orderproof.laws import port_laws
from orderproof.ports.engine_process import EngineLimits
from orderproof.ports.engines.engine import EngineError, InferenceEngine
from orderproof.ports.engines.registry import find_engine
from orderproof.ports.load import tiny_reference
from orderproof.subject_spec import ARCH_PREFIX

ROW_SECONDS = 480.0  # [s] for one row; only an engine that hangs takes as long
CALL_SECONDS = 120.0  # [s] for a call: a row may have a few that hang
SKIPPED_IN_VARIANTS = (
    "same_far_positions", "same_greedy_tokens", "same_chunked_prefill", "same_padded_batch", "same_shared_prefix",
    "same_cached_prompt", "same_after_preemption",
)  # fmt: skip

_NOT_VALUES = ("architectures", "dtype", "transformers_version")


@dataclass(frozen=True)
class PortRequest:
    """One row to compute.

    Attributes:
        name: The architecture.
        variant: "default", or a rope scaling.
        engine: What reads its checkpoint.
        earlier: Rows that may be of the same checkpoint, as the text model of a model of images often is.

    """

    keeps_process: ClassVar[bool] = True  # an engine in an environment of its own, for all rows

    name: str
    variant: str
    engine: InferenceEngine
    earlier: tuple[PortRow, ...] = ()

    @classmethod
    def warm_up(cls) -> None:
        """Use one thread in every worker."""
        torch.set_num_threads(1)

    @classmethod
    def from_line(cls, line: str) -> PortRequest:
        """The request of one line of JSON; its engine is found by its name."""
        given = json.loads(line)
        earlier = tuple(PortRow.model_validate(row) for row in given["earlier"])
        return cls(given["name"], given["variant"], find_engine(given["engine"]), earlier)

    def to_line(self) -> str:
        """The request as one line of JSON."""
        earlier = [row.model_dump(mode="json") for row in self.earlier]
        given = {"name": self.name, "variant": self.variant, "engine": self.engine.name, "earlier": earlier}
        return json.dumps(given)

    @property
    def title(self) -> str:
        """The row in a line about progress."""
        return f"{self.name} ({self.engine.name}, {self.variant})"

    @property
    def empty_row(self) -> PortRow:
        """The row with its key only."""
        return PortRow(
            name=self.name, variant=self.variant, engine=self.engine.name, engine_version=self.engine.version,
            transformers=metadata.version("transformers"),
        )  # fmt: skip

    def after(self, rows: Sequence[PortRow]) -> PortRequest:
        """The request that may take over one of these rows."""
        return replace(self, earlier=tuple(row for row in rows if row.key[1:] == self.empty_row.key[1:]))

    def start(self, close_in_child: Callable[[], None]) -> PortTask:
        """Fork a process that makes the row."""
        if self.engine.has_environment:  # one process for all rows
            with suppress(EngineError):  # each row says why it is not there
                self.engine.prepare()
        return PortTask(self, close_in_child)

    def row_of(self, line: str) -> PortRow:
        """The row of one line of JSON."""
        return PortRow.model_validate_json(line)

    def died(self, reason: str) -> PortRow:
        """The row, if what makes it dies again and again."""
        return self.crashed(reason)

    def crashed(self, reason: str) -> PortRow:
        """The row, if what makes it raises."""
        return self.empty_row.model_copy(update={"failure": one_line(reason), "finished_on": today()})


class PortTask(ForkedProcess):
    """A process that makes one row."""

    def __init__(self, request: PortRequest, close_in_child: Callable[[], None]) -> None:
        """Fork. `close_in_child` closes files that only the parent should hold."""
        self.title, self._request = request.title, request
        self._began, self._result = time.monotonic(), tempfile.TemporaryFile()  # noqa: SIM115 - read by `poll`

        def work() -> None:
            close_in_child()
            self._result.write(make_row(request).to_line().encode())
            self._result.flush()

        super().__init__(work)

    def poll(self) -> PortRow | None:
        """The row, once the process has ended or exceeded its time; None while it runs."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        late = not pid and time.monotonic() - self._began > ROW_SECONDS
        if not pid and not late:
            return None
        if pid:
            self.pid, self.usage = 0, usage
        super().stop()
        with self._result:
            self._result.seek(0)
            text = self._result.read()
        used = 0.0 if self.usage is None else self.usage.ru_utime + self.usage.ru_stime
        if late or not text:
            reason = f"not done after {ROW_SECONDS:g} s" if late else f"its process {exit_description(status)}"
            row = self._request.crashed(reason)
        else:
            row = self._request.row_of(text.decode())
        return row.model_copy(update={"processor_seconds": round(used, 2), "finished_on": today()})

    def stop(self) -> None:
        """End the process with all that it started, and discard its row."""
        super().stop()
        self._result.close()


def make_row(request: PortRequest) -> PortRow:
    """The row of one request: that of an earlier one if its checkpoint is the same. Never raises."""
    empty = request.empty_row
    try:
        request.engine.prepare()
        if not request.engine.knows(request.name):
            return empty.model_copy(update={"known": False})
        width = request.engine.head_width
        values = variants(request.name, width)[request.variant]
        embeds = bool(request.engine.encoder_abilities)
        reference = tiny_reference(ARCH_PREFIX + request.name, values=values, head_width=width, may_be_encoder=embeds)
        if (same := _same_checkpoint(reference.config, empty, request.earlier)) is not None:
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
