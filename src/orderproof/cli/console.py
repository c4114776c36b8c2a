"""Consoles: the report on standard output, progress on standard error.

Colour only on terminals and never with NO_COLOR. Where a machine-readable format goes to standard output, nothing else
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def report_console(machine_outputs: Iterable[str | None]) -> Console:
    """The console for the report: standard error when a machine format goes to standard output."""
    return Console(stderr="-" in list(machine_outputs), highlight=False, soft_wrap=False)


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A progress display on standard error on terminals; elsewhere nothing is printed."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda text, done, total: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task("loading", total=None)

        def update(text: str, done: int, total: int) -> None:
            display.update(task, description=text, completed=done, total=total)

        yield update
