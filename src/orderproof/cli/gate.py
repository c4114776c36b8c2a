"""The baseline of a run: findings that are accepted, entries that have had their time, and a file that is written."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import typer

from orderproof.cli.handed_report import is_of_several
from orderproof.configuration.baseline import Baseline, baseline_text, read_baseline
from orderproof.records.audit import EXIT_INTERRUPTED, Report


class Gate:
    """The baseline that the options of a command name. Raises `UsageError` where it cannot be read or written."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        from orderproof.report.file_output import check_writable

        self.today = date.today()  # noqa: DTZ011 - the day of whoever runs it
        self.written: Path | None = options["write_baseline"]
        read: Path | None = options["baseline"]
        check_writable(self.written)
        self.baseline: Baseline | None = None
        if is_of_several():
            return  # the process that audits them all has the baseline
        if self.written is not None:
            exists = self.written.expanduser().is_file()
            self.baseline = read_baseline(self.written.expanduser(), today=self.today, drafts=True) if exists else None
        elif read is not None:
            self.baseline = read_baseline(read.expanduser(), today=self.today)

    def accept(self, report: Report) -> Report:
        """The report in which accepted findings are as expected; unchanged where a baseline is written."""
        return report if self.baseline is None or self.written is not None else self.baseline.accept(report)

    def end(self, code: int, reports: Sequence[Report], *, quiet: bool, subjects: Collection[str] | None = None) -> int:
        """Write the file, or name expired and stale entries; the exit code of the command.

        `subjects` are all of a project, where all are audited.
        """
        from orderproof.report.file_output import write_file

        if self.written is not None:
            write_file(baseline_text(reports, self.baseline, today=self.today), self.written.expanduser())
            if not quiet:
                typer.echo(f"written: {self.written}; each accepted finding needs a reason", err=True)
        elif self.baseline is not None and code != EXIT_INTERRUPTED:
            problems = self.baseline.problems(subjects)
            if problems and not code:
                problems.append("exit code 2: every check passed, and the baseline has entries to delete")
            sys.stderr.writelines(f"orderproof: {line}\n" for line in problems)
            return code or (2 if problems else 0)
        return code
