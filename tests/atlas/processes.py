"""Helpers for child processes and the rows that they stored."""

from __future__ import annotations

import json
import time
from pathlib import Path


def ended(pid: int) -> bool:
    """True if a process has ended within five seconds."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def rows_in(path: Path) -> list[str]:
    return [json.loads(line)["name"] for line in path.read_text().splitlines()]
