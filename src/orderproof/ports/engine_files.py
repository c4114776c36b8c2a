"""Files in the temporary folder of the process of an engine: its outputs, and the error stream of its libraries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orderproof.ports.engine_side.serving import ERRORS, Output, Scores

MAX_ERROR_TEXT, MAX_ERROR_LINE = 1 << 16, 200  # characters
_FAILURE = re.compile(r"assert|abort|fatal|terminate|error|failed", re.IGNORECASE)
_PATH = re.compile(r"\S*/")  # of a source file on the machine that built the library


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


def last_message(place: Path) -> str:
    """The last line that names a failure in the error stream of a child, after a colon; empty if there is none."""
    try:
        text = (place / ERRORS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [" ".join(line.split()) for line in text[-MAX_ERROR_TEXT:].splitlines() if _FAILURE.search(line)]
    return f": {_PATH.sub('', lines[-1])[:MAX_ERROR_LINE]}" if lines else ""
