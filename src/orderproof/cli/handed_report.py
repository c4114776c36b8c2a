"""The report of a command, handed to the process that started it to audit several subjects."""

from __future__ import annotations

import json
from pathlib import Path

from orderproof.records.audit import Report
from orderproof.report.file_output import write_file

_targets: list[Path] = []  # in a process that audits one subject of several


def hand_over_to(file: Path | None) -> None:
    """From now on write reports to this file, or to none."""
    _targets[:] = [] if file is None else [file]


def is_of_several() -> bool:
    """True in a process that audits one subject of several."""
    return bool(_targets)


def hand_over(report: Report) -> None:
    """Write the report, if another process waits for it."""
    for target in _targets:
        write_file(report_text(report), target)


def report_text(report: Report) -> str:
    """A report as text that keeps NaN and infinity, which JSON proper lacks."""
    return json.dumps(report.model_dump(by_alias=True))


def report_of_text(text: str) -> Report:
    """The report of such a text. Raises `ValueError`."""
    return Report.model_validate(json.loads(text))
