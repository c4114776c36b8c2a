"""Reports that are kept, and given again while nothing that they depend on has changed.

A kept report that is not whole, of another format, or older than a change of its basis is none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from orderproof.configuration.basis import FOLDER, changes, options_text
from orderproof.errors import UsageError
from orderproof.records.audit import Basis, Report
from orderproof.report.file_output import write_file

FORMAT = 4


@dataclass(frozen=True)
class KeptReport:
    """A report, and when it was made: "2026-11-29 16:40"."""

    report: Report
    made: str


@dataclass(frozen=True)
class KeptReports:
    """The kept report of one subject with one set of options.

    Attributes:
        folder: The folder of the configuration.
        name: The name of the subject there.
        options: What determines the report, besides files, packages and the environment.

    """

    folder: Path
    name: str
    options: Mapping[str, Any]

    @property
    def file(self) -> Path:
        """The file of the report."""
        return self.folder / FOLDER / f"{self.name}-{_digest(json.dumps(self.options, sort_keys=True))[:16]}.json"

    def find(self) -> KeptReport | None:
        """The kept report, if nothing has changed."""
        try:
            checksum, _, body = self.file.read_text(encoding="utf-8").partition("\n")
            if checksum != _digest(body):
                return None
            kept = json.loads(body)
            if kept["format"] != FORMAT:
                return None
            if any(changes(Basis.model_validate(kept["basis"]), options_text(self.options))):
                return None
            return KeptReport(Report.model_validate(kept["report"]), kept["made"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # cut, or of another version: it is made again

    def keep(self, report: Report, basis: Basis) -> None:
        """Keep a report."""
        body = json.dumps(
            {
                "format": FORMAT,
                "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
                "basis": basis.model_dump(),
                "report": report.model_dump(by_alias=True),
            }
        )
        try:
            self.file.parent.mkdir(exist_ok=True)
            write_file("*\n", self.file.parent / ".gitignore")
            write_file(f"{_digest(body)}\n{body}", self.file)
        except (OSError, UsageError):
            return  # a folder that cannot be written: the next audit takes its time again


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
