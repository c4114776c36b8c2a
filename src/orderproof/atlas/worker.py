"""A forked process that audits one architecture, with limits on time and memory.

The process leads its own session, so that its own child processes are killed with it, and it ends when its parent
does. It writes its row to a temporary file, which the parent reads after the process has ended, so neither can block
on the other.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from pydantic import ValidationError

from orderproof.atlas import row as atlas_row
from orderproof.atlas.row import AtlasRow, one_line, with_failure
from orderproof.auditing.api import audit
from orderproof.auditing.decide.sandbox import LAW_TIMEOUT
from orderproof.blocks.transformer import Transformer
from orderproof.forked_process import ForkedProcess, exit_description, signal_name
from orderproof.models.hf.architectures import known_architectures
from orderproof.recording.recorder import decompositions
from orderproof.records.document import Record

GIB = 2**30
LAW_SHARE = 0.4  # of the time limit, for one law: the default limits are 300 s and 120 s
GRACE_SECONDS = 10  # [s] after the time limit, SIGALRM ends a process that its parent has not killed
# Modules that the code of nearly every architecture imports, which takes 0.4 s, or the measured laws.
_SHARED_MODULES = (
    "transformers.masking_utils",
    "transformers.modeling_layers",
    "transformers.modeling_utils",
    "transformers.processing_utils",
    "transformers.image_processing_backends",
    "transformers.video_processing_utils",
    "transformers.generation.utils",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.processing_auto",
    "torch._inductor.ir",  # eager flex attention
    "sympy.simplify",  # sizes of open recordings
)
_FRAME = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')


@dataclass(frozen=True)
class Limits:
    """Limits of one process."""

    seconds: float = 300.0
    memory_gib: float = 4.0  # [GiB] of address space

    @property
    def law_seconds(self) -> float:
        """The limit of each law [s], which grows with that of the process: on a busy machine both are too short."""
        return max(LAW_TIMEOUT, LAW_SHARE * self.seconds)


class RowRequest(Record):
    """The architecture, the attention backend and the limits of one row."""

    keeps_process: ClassVar[bool] = False

    name: str
    attention: str | None
    limits: Limits

    @classmethod
    def warm_up(cls) -> None:
        """Import and compute what every worker needs, once."""
        warm_up()

    @classmethod
    def from_line(cls, line: str) -> Self:
        """The request of one line of JSON."""
        return cls.model_validate_json(line)

    def to_line(self) -> str:
        """The request as one line of JSON."""
        return self.model_dump_json()

    @property
    def title(self) -> str:
        """The row in a line about progress."""
        return self.name

    @property
    def empty_row(self) -> AtlasRow:
        """The row with its key only."""
        return atlas_row.empty_row(self.name, self.attention)

    def start(self, close_in_child: Callable[[], None]) -> AtlasWorker:
        """Fork a process that makes the row."""
        return AtlasWorker(self, close_in_child)

    def row_of(self, line: str) -> AtlasRow:
        """The row of one line of JSON."""
        return AtlasRow.model_validate_json(line)

    def died(self, reason: str) -> AtlasRow:
        """The row, if what makes it dies again and again."""
        return with_failure(self.empty_row, "memory", reason, limit=self.limits.memory_gib)

    def crashed(self, reason: str) -> AtlasRow:
        """The row, if what makes it raises."""
        return with_failure(self.empty_row, "crash", reason)


class AtlasWorker(ForkedProcess):
    """A process that produces one row."""

    def __init__(self, request: RowRequest, close_in_child: Callable[[], None]) -> None:
        """Fork. `close_in_child` closes files that only the parent should hold."""
        empty_row, limits = request.empty_row, request.limits
        self.title, self.empty_row, self.limits = request.title, empty_row, limits
        self._start = time.monotonic()
        self._result, self._trace = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - read by `poll`

        def work() -> None:
            try:
                _apply_limits(limits)
                close_in_child()
                row = atlas_row.make_row(request.name, request.attention, limits.law_seconds)
            except BaseException as error:  # noqa: BLE001 - recorded in the row
                row = with_failure(empty_row, "crash", one_line(f"{type(error).__name__}: {error}"))
            self._result.write(row.model_dump_json().encode())
            self._result.flush()

        super().__init__(work, self._trace)

    def poll(self) -> AtlasRow | None:
        """The row, once the process has ended or exceeded its time; None while it runs."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        late = not pid and time.monotonic() - self._start > self.limits.seconds
        if not pid and not late:
            return None
        group = self.pid
        if pid:
            self.pid, self.usage = 0, usage
        self._kill(group)
        with self._result, self._trace:
            row = self._finished_row(
                late=late, status=status, peak_gib=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / GIB
            )
        used = self.usage.ru_utime + self.usage.ru_stime if self.usage is not None else 0.0
        return row.model_copy(update={"processor_seconds": round(used, 2)})

    def stop(self) -> None:
        """Kill the process and all processes that it started, and discard its row."""
        self._kill(self.pid)
        with self._result, self._trace:
            pass

    def _kill(self, group: int) -> None:
        """Kill what still runs; a process that has ended may have left others in its group."""
        super().stop()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)

    def _finished_row(self, *, late: bool, status: int, peak_gib: float) -> AtlasRow:
        row = self._read_row()
        if late:
            seconds = f"{self.limits.seconds:g}"
            row = with_failure(self.empty_row, "timeout", f"not done after {seconds} s", limit=self.limits.seconds)
        elif status != 0 or row is None:
            row = self._crash_row(status, peak_gib)
        if row.failure is not None and row.failure.category == "memory":
            row = with_failure(row, "memory", row.failure.reason, limit=self.limits.memory_gib)
        return row

    def _read_row(self) -> AtlasRow | None:
        self._result.seek(0)
        text = self._result.read()
        try:
            row = AtlasRow.model_validate_json(text)
        except ValidationError:
            return None
        return row if row.key == self.empty_row.key else None

    def _crash_row(self, status: int, peak_gib: float) -> AtlasRow:
        self._trace.seek(0)
        traceback = self._trace.read(65536).decode(errors="replace")
        frame = _FRAME.search(traceback)
        where = f" in {frame[3]} ({frame[1].rsplit('/', 1)[-1]}:{frame[2]})" if frame else ""
        if not os.WIFSIGNALED(status):
            return with_failure(
                self.empty_row, "crash", f"its process {exit_description(status)} and left no row{where}"
            )
        number = os.WTERMSIG(status)
        name = signal_name(number)
        if number == signal.SIGKILL or peak_gib > self.limits.memory_gib / 2:
            return with_failure(self.empty_row, "memory", f"ended by {name} with {peak_gib:.1f} GiB in use{where}")
        return with_failure(self.empty_row, "crash", f"ended by {name}{where}")


def warm_up() -> None:
    """Import and compute what every worker needs, once; this process and its workers use one thread from now on."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    known_architectures()
    for module in _SHARED_MODULES:
        with contextlib.suppress(ImportError):  # some need a library for images
            importlib.import_module(module)
    decompositions()
    with contextlib.suppress(ImportError, AttributeError):  # a private table, which the first checkpoint fills
        importlib.import_module("transformers.conversion_mapping").get_checkpoint_conversion_mapping("llama")
    model = Transformer(width=8, heads=2, layers=1, causal=True, vocabulary=11)
    audit(model, inputs=(torch.arange(14).reshape(2, 7) % 11,))  # the first recordings and proofs fill many caches


def _apply_limits(limits: Limits) -> None:
    signal.alarm(int(limits.seconds) + GRACE_SECONDS)
    size = int(limits.memory_gib * GIB)
    for kind, most in ((resource.RLIMIT_AS, size), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # a lower limit is set already, or the system has none
            resource.setrlimit(kind, (most, most))
