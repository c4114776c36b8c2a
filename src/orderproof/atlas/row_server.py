"""A warm process that makes the rows it is asked for: `python -m orderproof.atlas.row_server`.

It reads one `RowRequest` a line from standard input, as JSON, and writes one row a line to standard output. Each row is
made in a fork of it. A process that has threads, such as a worker of Ray, uses it because it should not fork itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import IO

from orderproof.atlas import worker
from orderproof.atlas.worker import RowRequest, frozen_gc, start_row
from orderproof.forked_process import die_with_parent

POLL_INTERVAL = 0.02  # [s]


class RowClient:
    """A running row server. It ends with the process that started it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of the C library
        )  # fmt: skip

    def row(self, request: str) -> str:
        """The row of a request, both as JSON. Raises `RuntimeError` if the server has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(request, file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise RuntimeError(f"the row server ended with exit code {self._process.wait()}")
        return answer


def serve(requests: IO[str], rows: IO[str]) -> None:
    """Answer requests until the stream ends."""
    with frozen_gc():
        for line in requests:
            process = start_row(RowRequest.model_validate_json(line), rows.close)
            while (row := process.poll()) is None:
                time.sleep(POLL_INTERVAL)
            print(row.model_dump_json(), file=rows, flush=True)


def main() -> None:
    """Serve on the standard streams; what libraries print goes to standard error instead."""
    rows = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker.warm_up()
    serve(sys.stdin, rows)


if __name__ == "__main__":
    main()
