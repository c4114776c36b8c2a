"""A warm process that makes the rows it is asked for: `python -m orderproof.atlas.row_server MODULE:CLASS`.

It reads one request of the class a line from standard input, as JSON, and writes one row a line to standard output.
Each row is made in a fork of it. A process that has threads, such as a worker of Ray, uses it because it should not
fork itself.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import subprocess
import sys
import time
from typing import IO, Any

from orderproof.atlas.engines.engine import Request
from orderproof.forked_process import die_with_parent, frozen_gc

POLL_INTERVAL = 0.02  # [s]


def place_of(kind: type[Request[Any]]) -> str:
    """The class of requests as MODULE:CLASS."""
    return f"{kind.__module__}:{kind.__qualname__}"


def class_at(place: str) -> type[Request[Any]]:
    """The class of MODULE:CLASS."""
    module, _, name = place.partition(":")
    kind: type[Request[Any]] = getattr(importlib.import_module(module), name)
    return kind


class RowClient:
    """A running row server. It ends with the process that started it."""

    def __init__(self, kind: type[Request[Any]]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, place_of(kind)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of the C library
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._rows = self._process.stdin, self._process.stdout

    def ask(self, request: str) -> None:
        """Send a request, as JSON, after the answer to the last one."""
        try:
            print(request, file=self._requests, flush=True)
        except BrokenPipeError:
            return  # `answer` says so

    def has_answer(self) -> bool:
        """True if `answer` does not wait."""
        return bool(select.select([self._rows], [], [], 0)[0])

    def answer(self) -> str:
        """The row of the request, as JSON. Raises `RuntimeError` if the server has ended."""
        if not (answer := self._rows.readline()):
            code = self._process.wait()
            self.stop()
            raise RuntimeError(f"the row server ended with exit code {code}")
        return answer

    def stop(self) -> None:
        """End the server, and with it the row that it makes."""
        self._process.kill()
        self._process.wait()
        self._rows.close()
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()


def serve(kind: type[Request[Any]], requests: IO[str], rows: IO[str]) -> None:
    """Answer requests until the stream ends."""
    with frozen_gc():
        for line in requests:
            process = kind.from_line(line).start(rows.close)
            while (row := process.poll()) is None:
                time.sleep(POLL_INTERVAL)
            print(row.model_dump_json(), file=rows, flush=True)


def main() -> None:
    """Serve on the standard streams; what libraries print goes to standard error instead."""
    rows = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    kind = class_at(sys.argv[1])
    kind.warm_up()
    serve(kind, sys.stdin, rows)


if __name__ == "__main__":
    main()
