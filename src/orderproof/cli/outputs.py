"""Writing the output files of a command and naming them at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orderproof.report.file_output import write_file

if TYPE_CHECKING:
    from orderproof.auditing.record.context import AuditContext
    from orderproof.records.audit import Report

Output = tuple[str | Path | None, Callable[[str | Path], object]]


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
