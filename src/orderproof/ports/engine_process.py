"""An engine in a process of its own, with limits of time and memory: what it does there costs one call its result.

The child loads the checkpoint and makes call after call. It writes arrays into a temporary folder, and a line of JSON
for each call into a pipe. A child that dies or takes too long is replaced by one that starts with the next call.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import select
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orderproof import forked_process
from orderproof.errors import first_line
from orderproof.laws.ports import PortCall
from orderproof.library_messages import suppress_warnings
from orderproof.ports.engine_files import Output, keep_error_messages, last_message, read_output, write_output
from orderproof.ports.engines.engine import EngineError, InferenceEngine, LoadedModel

GIB = 2**30
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


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
    defaults: Mapping[str, Any] = field(default_factory=dict)  # its values for keys that config.json lacks
    outputs: dict[PortCall, Output | str] = field(default_factory=dict)

    def take_head(self, head: Mapping[str, Any]) -> None:
        """Take what the first line of a process says."""
        self.knows, self.load_failure, self.defaults = head["knows"], head["failure"], head["defaults"]
        self.refused = bool(head["refused"])


def run_engine(
    engine: InferenceEngine, folder: Path, model_type: str, calls: Sequence[PortCall], limits: EngineLimits
) -> EngineRun:
    """Load a checkpoint and make these calls. Never raises for what the engine does."""
    run = EngineRun()
    try:
        engine.prepare()
    except EngineError as error:
        run.load_failure = str(error)
    while len(run.outputs) < len(calls) and not run.load_failure and run.knows:
        rest = calls[len(run.outputs) :]
        if not forked_process.can_fork():  # another system, where libraries do not survive a fork
            _run_here(engine, folder, model_type, rest, run)
            return run
        with TemporaryDirectory() as place:
            child = _EngineProcess(engine, folder, model_type, rest, Path(place), limits)
            try:
                _collect(child, rest, run, limits)
            finally:
                child.stop()
    return run


def _collect(child: _EngineProcess, calls: Sequence[PortCall], run: EngineRun, limits: EngineLimits) -> None:
    """Read the lines of one child until it ends, fails or takes too long."""
    loaded = child.next_line(limits.seconds)
    if isinstance(loaded, str):
        run.load_failure = f"loading {loaded}"
        return
    run.take_head(loaded)
    for call in calls if run.knows and not run.load_failure else ():
        line = child.next_line(limits.seconds)
        if isinstance(line, str):
            run.outputs[call] = line
            return
        run.outputs[call] = line["failure"] or read_output(line, child.place)


class _EngineProcess(forked_process.ForkedProcess):
    """A forked process that loads a checkpoint and makes calls."""

    def __init__(
        self, engine: InferenceEngine, folder: Path, model_type: str, calls: Sequence[PortCall], place: Path,
        limits: EngineLimits,
    ) -> None:  # fmt: skip
        self.place, self._buffer = place, b""
        self._read, write = os.pipe()

        def work() -> None:
            os.close(self._read)
            _apply_limits(limits)
            _use_temporary_folder(place)
            keep_error_messages(place)
            for line in _lines(engine, folder, model_type, calls, place):
                data = json.dumps(line).encode() + b"\n"
                while data:
                    data = data[os.write(write, data) :]

        super().__init__(work)
        os.close(write)

    def next_line(self, limit: float) -> dict[str, Any] | str:
        """The next line; or a text on why there is none; `limit` in s."""
        latest = time.monotonic() + limit
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(latest - time.monotonic(), 0))
            if not ready:
                return f"was not done after {limit:g} s: give it more with --timeout, or call the engine alone"
            more = os.read(self._read, 1 << 16)
            if not more:
                status = forked_process.exit_description(self.wait())
                return f"ended its process, which {status}{last_message(self.place)}"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return dict(json.loads(line))

    def stop(self) -> None:
        """End the process and all processes that it started."""
        os.close(self._read)
        super().stop()


def _lines(
    engine: InferenceEngine, folder: Path, model_type: str, calls: Sequence[PortCall], place: Path
) -> Iterator[dict[str, Any]]:
    """In the child: a line for the loading, then one for each call, whose arrays are in `place`."""
    model, head = _load(engine, folder, model_type)
    yield head
    for index, call in enumerate(calls if model is not None else ()):
        assert model is not None
        output = _call(model, call)
        if isinstance(output, str):
            yield {"failure": output}
        else:
            yield {"failure": "", **write_output(output, place, index)}


def _run_here(
    engine: InferenceEngine, folder: Path, model_type: str, calls: Sequence[PortCall], run: EngineRun
) -> None:
    """The same in this process."""
    model, head = _load(engine, folder, model_type)
    run.take_head(head)
    if model is not None:
        run.outputs.update({call: _call(model, call) for call in calls})


def _load(engine: InferenceEngine, folder: Path, model_type: str) -> tuple[LoadedModel | None, dict[str, Any]]:
    head: dict[str, Any] = {"knows": True, "failure": "", "refused": False, "defaults": {}}
    try:
        with suppress_warnings():
            head["knows"] = engine.knows(model_type)
            if not head["knows"]:
                return None, head
            plain = (int, float, str, bool, type(None))
            head["defaults"] = {k: v for k, v in engine.defaults(model_type).items() if isinstance(v, plain)}
            return engine.load(folder), head
    except BaseException as error:  # noqa: BLE001 - third-party code: it may raise anything, SystemExit too
        text = failure_text(error).replace(str(folder), "the checkpoint")
        return None, {**head, "failure": text, "refused": not isinstance(error, EngineError)}


def _call(model: LoadedModel, call: PortCall) -> Output | str:
    try:
        with suppress_warnings():
            if call.kind == "prefill":
                return [model.prefill(call.rows[0])]
            if call.kind == "chunks":
                return [model.chunks(call.rows[0], call.sizes)]
            if call.kind == "batch":
                return model.batch(call.rows)
            return model.greedy(call.rows[0], call.count)
    except BaseException as error:  # noqa: BLE001 - third-party code: it may raise anything, SystemExit too
        return failure_text(error)


def failure_text(error: BaseException) -> str:
    """The error that an engine raised, or the one that caused it, on one line without terminal colours."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) if isinstance(error, EngineError) else f"raised {_COLOUR.sub('', first_line(error))}"


def _apply_limits(limits: EngineLimits) -> None:
    import torch

    torch.set_num_threads(1)
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    size = int(limits.memory_gib * GIB)
    for kind, most in ((resource.RLIMIT_AS, size), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # a lower limit is set already, or the system has none
            resource.setrlimit(kind, (most, most))


def _use_temporary_folder(place: Path) -> None:
    """Make temporary files here: the parent removes the folder, however this process ends."""
    folder = place / "temporary"
    folder.mkdir()
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
