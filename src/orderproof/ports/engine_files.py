"""Files in the temporary folder of the process of an engine: its outputs, and the error stream of its libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orderproof.ports.engines.engine import Scores

ERRORS = "errors.txt"
MAX_ERROR_TEXT, MAX_ERROR_LINE = 1 << 16, 200  # characters
Output = list[Scores] | list[int]  # the scores of each row, or generated token ids
_FAILURE = re.compile(r"assert|abort|fatal|terminate|error|failed", re.IGNORECASE)
_PATH = re.compile(r"\S*/")  # of a source file on the machine that built the library


def write_output(output: Output, place: Path, index: int) -> dict[str, Any]:
    """Write the arrays of one call; the part of its line of JSON that names them."""
    rows: list[Any] = []
    elements: Sequence[Scores | int] = output
    for number, row in enumerate(elements):
        if isinstance(row, int):
            rows.append(row)
            continue
        name = f"{index}-{number}"
        np.save(place / f"{name}.npy", np.asarray(row.values, dtype=np.float32), allow_pickle=False)
        if row.candidates is not None:
            np.save(place / f"{name}-ids.npy", np.asarray(row.candidates, dtype=np.int64), allow_pickle=False)
        rows.append(
            {
                "name": name, "normalised": row.normalised, "partial": row.candidates is not None,
                "among_candidates": row.among_candidates,
            }
        )  # fmt: skip
    return {"rows": rows}


def read_output(line: Mapping[str, Any], place: Path) -> Output:
    """Read what `write_output` wrote."""
    rows = line["rows"]
    if all(isinstance(row, int) for row in rows):
        return list(rows)
    return [
        Scores(
            np.load(place / f"{row['name']}.npy", allow_pickle=False),
            np.load(place / f"{row['name']}-ids.npy", allow_pickle=False) if row["partial"] else None,
            row["normalised"],
            row["among_candidates"],
        )
        for row in rows
    ]


def keep_error_messages(place: Path) -> None:
    """Write the error stream of libraries, which a child has not, into a file: the last words of one that aborts."""
    file = os.open(place / ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 2)
    os.close(file)


def last_message(place: Path) -> str:
    """The last line that names a failure in the error stream of a child, after a colon; empty if there is none."""
    try:
        text = (place / ERRORS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [" ".join(line.split()) for line in text[-MAX_ERROR_TEXT:].splitlines() if _FAILURE.search(line)]
    return f": {_PATH.sub('', lines[-1])[:MAX_ERROR_LINE]}" if lines else ""
