"""The reports of all subjects of a project: what is printed, what is written, and the exit code of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from orderproof.records.audit import EXIT_INTERRUPTED, Report
from orderproof.report import phrases
from orderproof.report.merged_report import merge_reports
from orderproof.report.summary import exit_code_text
from orderproof.report.terminal import render_text
from orderproof.report.terminal_tables import plain_text

_WORST_FIRST = (EXIT_INTERRUPTED, 1, 2, 3)
_STYLES = {0: "bold green", 1: "bold red", 2: "bold red"}


@dataclass(frozen=True)
class Audited:
    """The audit of one subject: its exit code, its report, and if there is none, why."""

    name: str
    code: int
    report: Report | None = None
    message: str = ""  # the last line that it wrote on standard error
    unchanged_since: str = ""  # of a report that was kept
    accepted_count: int = 0  # findings that a baseline accepts

    def accepted(self, accept: Callable[[Report], Report]) -> Audited:
        """The same with the findings that a baseline accepts; an interrupted audit stays one."""
        if self.report is None or self.code == EXIT_INTERRUPTED:
            return self
        report = accept(self.report)
        count = len(self.report.unmet) - len(report.unmet)
        return replace(self, report=report, code=report.exit_code, accepted_count=count)

    @property
    def text(self) -> str:
        """The meaning of its exit code."""
        text = exit_code_text(self.report) if self.report is not None else self.message or "interrupted"
        if self.accepted_count:
            text = f"{text}; {phrases.pluralize(self.accepted_count, 'finding')} accepted by the baseline"
        return f"{text}; unchanged since {self.unchanged_since}" if self.unchanged_since else text


def exit_code(audited: Sequence[Audited]) -> int:
    """The code of the whole: interrupted, then a failed check, a subject without a report, an undecided check, 0."""
    codes = {each.code for each in audited}
    other = 2 if codes - {0, *_WORST_FIRST} else 0
    return next((code for code in _WORST_FIRST if code in codes), other)


def project_report(audited: Sequence[Audited], project: str) -> Report | None:
    """One report of all findings; a subject without a report is a note. None if no subject has one."""
    reports = [(each.name, each.report) for each in audited if each.report is not None]
    if not reports:
        return None
    report = merge_reports(reports, project, "project", "")
    missing = [f"{each.name}: no report: {each.text}" for each in audited if each.report is None]
    return report.model_copy(update={"notes": (*missing, *report.notes)})


def print_project(audited: Sequence[Audited], console: Console, *, details: bool) -> None:
    """Print the report of each subject that does not pass (`details`: of all), and a line for each subject."""
    for each in audited:
        if each.report is not None and (each.code or details):
            render_text(each.report, console, details=details)
            console.print()
    width = max((len(each.name) for each in audited), default=0)
    for each in audited:
        code = Text(f"exit code {each.code}", _STYLES.get(each.code, "bold yellow"))
        line = Text.assemble(plain_text(f"{each.name:<{width}}  "), code, ": ", plain_text(each.text))
        console.print(line, soft_wrap=True)
    passed = sum(each.code == 0 for each in audited)
    total = phrases.pluralize(len(audited), "subject")
    console.print(
        plain_text(f"exit code {exit_code(audited)}: {total}, {passed} without a failed check"), soft_wrap=True
    )
