"""An engine in a process of its own, with limits of time and memory: what it does there costs one call its result.

The process loads the checkpoint and makes call after call, as `engine_side.serving` says. It is forked from this one
for an engine that is installed here, and from the process of another environment for one that has its own. One that
dies or takes too long is replaced by one that starts with the next call.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orderproof import forked_process
from orderproof.laws.ports import PortCall
from orderproof.laws.ports.port_law import ModelKind
from orderproof.library_messages import suppress_warnings
from orderproof.ports.engine_files import last_message, read_output
from orderproof.ports.engine_side import serving
from orderproof.ports.engine_side.serving import Output
from orderproof.ports.engines.engine import EngineError, InferenceEngine

OWN_ERRORS = (EngineError,)


@dataclass(frozen=True)
class EngineLimits:
    """Limits of one process."""

    seconds: float = 120.0  # [s] to load, and for each call
    memory_gib: float = 16.0  # [GiB] of address space


@dataclass
class EngineRun:
    """The result of a process: for each call its output, or why there is none."""

    knows: bool = True
    load_failure: str = ""  # why it did not load the checkpoint
    refused: bool = False  # the library raised an error of its own; else it died, hung or is not there
    has_started: bool = True  # False: its interpreter, or the import of the engine, failed before any checkpoint
    defaults: Mapping[str, Any] = field(default_factory=dict)  # its values for keys that config.json lacks
    outputs: dict[PortCall, Output | str] = field(default_factory=dict)
    seconds: float = 0.0  # [s] of processor time for the checkpoint: to load it, and for all calls

    def take_head(self, head: Mapping[str, Any]) -> None:
        """Take what the first line of a process says."""
        self.knows, self.load_failure, self.defaults = head["knows"], head["failure"], head["defaults"]
        self.refused = bool(head["refused"])


@dataclass(frozen=True)
class LoadRequest:
    """The checkpoint that a process loads, and where it writes arrays."""

    folder: Path
    model_type: str
    place: Path
    memory_gib: float
    kind: ModelKind = "causal_lm"

    def line(self, session: int) -> dict[str, Any]:
        """The request as a line; its answers carry the number of the session."""
        return {
            "folder": str(self.folder), "model_type": self.model_type, "place": str(self.place),
            "memory_gib": self.memory_gib, "session": session, "kind": self.kind,
        }  # fmt: skip


def run_engine(
    engine: InferenceEngine, folder: Path, model_type: str, calls: Sequence[PortCall], limits: EngineLimits,
    kind: ModelKind = "causal_lm",
) -> EngineRun:  # fmt: skip
    """Load a checkpoint and make these calls. Never raises for what the engine does."""
    run = EngineRun()
    try:
        engine.prepare()
        while len(run.outputs) < len(calls) and not run.load_failure and run.knows:
            rest = calls[len(run.outputs) :]
            if not engine.has_environment and not forked_process.can_fork():
                # libraries do not survive a fork
                _run_here(engine, LoadRequest(folder, model_type, folder, 0, kind), rest, run)
                return run
            with TemporaryDirectory() as place:
                request = LoadRequest(folder, model_type, Path(place), limits.memory_gib, kind)
                process = engine.open_process(request) if engine.has_environment else _ForkedEngine(engine, request)
                try:
                    _collect(process, rest, run, limits)
                finally:
                    process.stop()
    except EngineError as error:
        run.load_failure, run.has_started = str(error), False
    return run


def _collect(process: EngineProcess, calls: Sequence[PortCall], run: EngineRun, limits: EngineLimits) -> None:
    """Read the lines of one process until it ends, fails or takes too long."""
    loaded, before = process.next_line(limits.seconds), run.seconds
    if isinstance(loaded, str):
        run.load_failure = f"loading {loaded}"
        return
    run.take_head(loaded)
    run.seconds = before + loaded["seconds"]
    for call in calls if run.knows and not run.load_failure else ():
        process.send(_call_line(call))
        line = process.next_line(limits.seconds)
        if isinstance(line, str):
            run.outputs[call] = line
            return
        run.seconds = before + line["seconds"]
        run.outputs[call] = line["failure"] or read_output(line, process.place)


def _call_line(call: PortCall) -> dict[str, Any]:
    return {"kind": call.kind, "rows": call.rows, "sizes": call.sizes, "count": call.count}


class EngineProcess(ABC):
    """A process that loads one checkpoint and answers calls."""

    def __init__(self, requests: int, answers: int, place: Path, session: int = 0) -> None:
        """The files that it reads and writes, and the folder of its arrays."""
        self.requests, self.answers, self.place, self.session = requests, answers, place, session
        self._buffer = b""

    def send(self, line: Mapping[str, Any]) -> None:
        """Send a request; one that has ended does not read it."""
        with contextlib.suppress(BrokenPipeError):
            serving.write_line(self.requests, line)

    def next_line(self, limit: float) -> dict[str, Any] | str:
        """The next answer of this session; or a text on why there is none; `limit` in s."""
        latest = time.monotonic() + limit
        while (line := self._next_line(latest)) is not None:
            if line.get("session", self.session) == self.session:
                died = line.get("died")
                return line if died is None else self._ended(forked_process.exit_description(died))
        if time.monotonic() >= latest:
            self.interrupt()
            return f"was not done after {limit:g} s: give it more with --timeout, or call the engine alone"
        return self._ended(self.end_description())

    def _next_line(self, latest: float) -> dict[str, Any] | None:
        """The next line; None after `latest`, or at the end of all lines."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.answers], [], [], max(latest - time.monotonic(), 0))
            more = os.read(self.answers, 1 << 16) if ready else b""
            if not more:
                return None
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return dict(json.loads(line))

    def _ended(self, how: str) -> str:
        return f"ended its process, which {how}{last_message(self.place)}"

    @abstractmethod
    def interrupt(self) -> None:
        """End the call that takes too long."""

    @abstractmethod
    def end_description(self) -> str:
        """How the process ended, whose answers have ended."""

    @abstractmethod
    def stop(self) -> None:
        """End the work on this checkpoint, and all that it started."""


class _ForkedEngine(EngineProcess):
    """A fork of this process."""

    def __init__(self, engine: InferenceEngine, request: LoadRequest) -> None:
        requests, answers = os.pipe(), os.pipe()

        def work() -> None:
            os.close(requests[1])
            os.close(answers[0])
            _use_one_thread()
            with suppress_warnings():
                serving.serve_checkpoint(engine, request.line(0), requests[0], answers[1], OWN_ERRORS)

        self._process = forked_process.ForkedProcess(work)
        os.close(requests[0])
        os.close(answers[1])
        super().__init__(requests[1], answers[0], request.place)

    def interrupt(self) -> None:
        """`stop` ends it."""

    def end_description(self) -> str:
        return forked_process.exit_description(self._process.wait())

    def stop(self) -> None:
        os.close(self.requests)
        os.close(self.answers)
        self._process.stop()


def _run_here(engine: InferenceEngine, request: LoadRequest, calls: Sequence[PortCall], run: EngineRun) -> None:
    """The same in this process."""
    with suppress_warnings():
        model, head = serving.load_checkpoint(engine, request.line(0), OWN_ERRORS)
        run.take_head(head)
        if model is not None:
            run.outputs.update({call: serving.make_call(model, _call_line(call), OWN_ERRORS) for call in calls})


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
