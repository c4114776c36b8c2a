"""`orderproof atlas`: every architecture that transformers knows, audited tiny, one process each."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import report_console
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from orderproof.auditing.atlas import Asked
    from orderproof.auditing.atlas_store import Store


def atlas(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Architectures by name. All by default.")
    ] = None,
    store: Annotated[
        str, typer.Option("--store", metavar="PATH", help="Where finished rows are kept, one a line; it is resumed.")
    ] = "atlas.jsonl",
    json: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write the rows as JSON; - for standard output.")
    ] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="PATH", help="Write the page; - for standard output.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="Architectures at a time.")] = 1,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Time for one architecture.")] = 300,
    memory: Annotated[float, typer.Option("--memory", metavar="GIB", help="Address space for one architecture.")] = 4,
    attention: options.Backend = None,
    date: Annotated[
        str | None, typer.Option("--date", metavar="YYYY-MM-DD", help="The date on the page; that of the last row.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no progress.")] = False,
) -> None:
    """Audit every text and vision architecture of transformers, tiny and with random weights.

    Each is audited in a process of its own; one that crashes, hangs or eats memory costs one row. Killed at any
    moment and started again with the same store, it goes on where it was.

    \b
    Examples:
      orderproof atlas --workers 4 --markdown docs/atlas.md --json docs/atlas.json
      orderproof atlas bert llama mamba
    """
    from orderproof.report.destination import check

    check(json, markdown)
    checked(date)
    with progress(quiet=quiet) as tell:
        tell((), 0, 1)
        from orderproof.auditing.atlas import Asked, run, wanted
        from orderproof.auditing.atlas_child import Limits
        from orderproof.auditing.atlas_store import Store

        asked = Asked(
            wanted(names or ()), attention=attention, workers=workers, limits=Limits(seconds=timeout, memory=memory)
        )
        interrupted = False
        with Store(store) as kept:
            try:
                run(asked, kept, tell)
            except KeyboardInterrupt:
                interrupted = True
    _written(asked, kept, json=json, markdown=markdown, date=date, quiet=quiet)
    if interrupted:
        raise KeyboardInterrupt


def _written(
    asked: Asked, store: Store, *, json: str | None, markdown: str | None, date: str | None, quiet: bool
) -> None:
    from orderproof.auditing.atlas import rows_of, to_json
    from orderproof.auditing.atlas_counts import summary
    from orderproof.auditing.atlas_page import page
    from orderproof.report.destination import write

    rows, total = rows_of(asked, store)
    day = date or max((row.finished for row in rows), default="no row yet")
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    if json is not None:
        write(to_json(rows, asked=total, date=day, machine=machine), json)
    if markdown is not None:
        write(page(rows, asked=total, date=day, machine=machine), markdown)
    if not quiet:
        console = report_console([json, markdown])
        console.print(summary(rows, asked=total))
        written = [path for path in (json, markdown) if path not in (None, "-")]
        console.print(f"rows: {store.path}" + "".join(f"\nwritten: {path}" for path in written), highlight=False)


def checked(date: str | None) -> None:
    """Raises `UsageError` where a date is none."""
    try:
        dt.date.fromisoformat(date or "2000-01-01")
    except ValueError:
        raise UsageError(f"expected --date YYYY-MM-DD; got {date!r}") from None


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[Sequence[str], int, int], None]]:
    """A progress display on standard error, on terminals; elsewhere silence. It has no thread: this process forks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda running, done, total: None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, auto_refresh=False, speed_estimate_period=600) as display:
        task = display.add_task("loading", total=None)
        counting = False

        def tell(running: Sequence[str], done: int, total: int) -> None:
            nonlocal task, counting
            if not counting and running:  # a task of its own: what was done before this run says nothing of its speed
                display.remove_task(task)
                task, counting = display.add_task("", completed=done, total=total), True
            text = ", ".join(running) if counting else "loading"
            display.update(task, description=f"{text[:40]:<40}", completed=done, total=total if counting else None)
            display.refresh()

        yield tell
