"""Writing the output files of a command and naming them at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from orderproof.report.file_output import write_file

if TYPE_CHECKING:
    from orderproof.auditing.record.context import AuditContext
    from orderproof.records.audit import Report

Output = tuple[str | Path | None, Callable[[str | Path], object]]


@dataclass(frozen=True)
class ReportFiles:
    """The files of one report, each None where it is not wanted; ``-`` is standard output."""

    json: str | None = None
    html: str | None = None
    junit: str | None = None
    sarif: str | None = None
    markdown: str | None = None
    certificate: str | None = None

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> ReportFiles:
        """Those that the options of a command name."""
        return cls(**{each.name: options.get(each.name) for each in fields(cls)})

    @property
    def paths(self) -> tuple[str | None, ...]:
        """All of them."""
        return astuple(self)

    def write(self, report: Report, context: AuditContext | None = None) -> list[str]:
        """Write them; the certificates need the context of the audit. Returns the paths without standard output."""
        return write_outputs(*self._outputs(report, context))

    def _outputs(self, report: Report, context: AuditContext | None) -> Iterator[Output]:
        from orderproof.report import write_html, write_json, write_junit, write_markdown, write_sarif

        yield self.html, partial(write_html, report)
        yield self.json, partial(write_json, report)
        yield self.junit, partial(write_junit, report)
        yield self.sarif, partial(write_sarif, report)
        yield self.markdown, partial(write_markdown, report)
        yield (self.certificate if context else None), certificate_writer(context, report)


def write_outputs(*outputs: Output) -> list[str]:
    """Call each function with its path, where there is one; return the paths without standard output (``-``)."""
    written = []
    for path, write in outputs:
        if path is not None:
            write(path)
            if str(path) != "-":
                written.append(str(path))
    return written


def rendered(render: Callable[[], str | bytes]) -> Callable[[str | Path], None]:
    """A function that writes what ``render`` returns to its path."""
    return lambda path: write_file(render(), path)


def certificate_writer(context: AuditContext | None, report: Report) -> Callable[[str | Path], None]:
    """A function that writes the certificates of a report; what it needs is imported when it is called."""

    def write(path: str | Path) -> None:
        assert context is not None
        from orderproof.cli.certificate_output import write_certificates

        write_certificates(context, report, path)

    return write


def print_written(console: Console, paths: list[str]) -> None:
    """Print ``written: a.json, b.html``; nothing without files."""
    if paths:
        console.print(f"written: {', '.join(paths)}", highlight=False, soft_wrap=True)
