"""The report as a JSON file (schema version 1)."""

from __future__ import annotations

from pathlib import Path

from orderproof.record import Report
from orderproof.report import destination


def write_json(report: Report, target: str | Path) -> None:
    """Write the report to a file in one step, or to standard output when the target is ``-``."""
    destination.write(report.to_json() + "\n", target)
