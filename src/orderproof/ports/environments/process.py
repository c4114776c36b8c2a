"""The process of another interpreter that imports an engine once and serves many checkpoints."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from orderproof import forked_process
from orderproof.ports import engine_side
from orderproof.ports.engine_process import EngineProcess, LoadRequest
from orderproof.ports.engine_side import serving
from orderproof.ports.engines.engine import EngineError

SIDES = Path(engine_side.__path__[0])
START_SECONDS = 300.0  # [s] to import an engine: vLLM takes 30 s, and compiles for 40 s on its first call
END_SECONDS = 10.0  # [s] until the end of a killed child is reported
_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV")
_sessions = itertools.count(1)


class EngineServer:
    """An interpreter that has imported an engine."""

    def __init__(
        self, python: Path, side: Path, variables: Mapping[str, str], label: str, program: Path = SIDES / "serving.py"
    ) -> None:
        """Start a program with a side, and wait for the import. Raises `EngineError`."""
        self.label, self.owner, self.has_ended = label, os.getpid(), False
        kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        try:
            self.process = subprocess.Popen(
                [str(python), "-I", str(program), str(side)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True,
                preexec_fn=forked_process.die_with_parent,  # noqa: PLW1509 - this process has one thread
                env={**kept, **offline, **variables},
            )  # fmt: skip
        except OSError as error:
            self.errors.close()
            raise EngineError(f"{label}: the interpreter {python} cannot be started: {error.strerror}") from None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.answers = self.process.stdin.fileno(), self.process.stdout.fileno()
        try:
            self.head = self._first_line(python)
        except BaseException:
            self.stop()
            raise

    @property
    def versions(self) -> dict[str, str]:
        """The versions that the process reports."""
        return dict(self.head["versions"])

    def _first_line(self, python: Path) -> dict[str, Any]:
        """The report of the process when its import is done."""
        try:
            data = self._next_line(START_SECONDS)
        except TimeoutError:
            raise EngineError(f"{self.label} was not imported by {python} within {START_SECONDS:g} s") from None
        if not data:
            raise EngineError(f"{self.label}: the interpreter {python} {self._end()}")
        try:
            line = json.loads(data)
        except ValueError:
            raise EngineError(f"{self.label}: expected an interpreter of Python; got {python}") from None
        if line["failure"]:
            raise EngineError(f"{self.label} cannot be imported by {python}: {line['failure']}")
        return dict(line)

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request, for a program that answers each with one line. Raises `EngineError` if it ends."""
        with contextlib.suppress(BrokenPipeError):  # it has ended
            serving.write_line(self.requests, request)
        if not (data := self._next_line()):
            raise EngineError(f"{self.label}: its process {self._end()}")
        return dict(json.loads(data))

    def _next_line(self, limit: float | None = None) -> bytes:
        """The next line; empty if the process ends. Raises `TimeoutError` after `limit` [s]."""
        data, latest = b"", None if limit is None else time.monotonic() + limit
        while not data.endswith(b"\n"):
            left = None if latest is None else max(latest - time.monotonic(), 0)
            if not select.select([self.answers], [], [], left)[0]:
                raise TimeoutError
            more = os.read(self.answers, 1 << 16)
            if not more:
                return b""
            data += more
        return data

    def _end(self) -> str:
        """How it ended, with the last line that it printed."""
        status = self.process.wait()
        how = f"was ended by {forked_process.signal_name(-status)}" if status < 0 else f"ended with exit code {status}"
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"{how}: {lines[-1].strip()[: serving.MAX_TEXT]}" if lines else how

    @property
    def is_alive(self) -> bool:
        """True if it may be used; a process that did not start it learns of its end from its answers."""
        return not self.has_ended and (os.getpid() != self.owner or self.process.poll() is None)

    def stop(self) -> None:
        """End it with all that it started, in the process that started it."""
        if os.getpid() == self.owner and self.process.returncode is None:
            forked_process.kill_tree(self.process.pid)
            self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            if file is not None:
                file.close()


class ServedEngine(EngineProcess):
    """A checkpoint in a fork of an engine server."""

    def __init__(self, server: EngineServer, request: LoadRequest) -> None:
        super().__init__(server.requests, server.answers, request.place, next(_sessions) + (os.getpid() << 20))
        self.server = server
        forked_process.kill_tree(server.process.pid, itself=False)  # what a process left that was killed in a call
        self.send(request.line(self.session))

    def interrupt(self) -> None:
        """End the child."""
        forked_process.kill_tree(self.server.process.pid, itself=False)
        self._next_line(time.monotonic() + END_SECONDS)

    def end_description(self) -> str:
        """The server itself has ended."""
        self.server.has_ended = True
        return "all its checkpoints share"

    def stop(self) -> None:
        """Let the child end."""
        if not self.server.has_ended:
            self.send({})


_servers: dict[Any, EngineServer] = {}
_failures: dict[Any, str] = {}  # an engine that cannot be imported is not imported again


def server_of(python: Path, side: Path, variables: Mapping[str, str], label: str) -> EngineServer:
    """The server of an environment, started on its first use. Raises `EngineError`."""
    key = (python, side, *sorted(variables.items()))
    found = _servers.get(key)
    if key in _failures:
        raise EngineError(_failures[key])
    try:
        if found is not None and not found.is_alive:
            found.stop()  # close its files
        if found is None or not found.is_alive:
            found = _servers[key] = EngineServer(python, side, variables, label)
    except EngineError as error:
        _failures[key] = str(error)
        raise
    return found


@atexit.register
def stop_servers() -> None:
    """End the processes of all environments."""
    for server in _servers.values():
        server.stop()
    _servers.clear()
