"""`orderproof atlas`: audit a tiny version of every architecture of transformers, one process each."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import StageLines, has_live_display, report_console
from orderproof.cli.outputs import Output, print_written, rendered, write_outputs
from orderproof.errors import UsageError
from orderproof.subject_spec import ARCH_PREFIX, check_spec

if TYPE_CHECKING:
    from orderproof.atlas.document import AtlasDocument


def atlas(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Architectures by name. All by default.")
    ] = None,
    store: Annotated[
        str, typer.Option("--store", metavar="PATH", help="Finished rows, one a line. An existing store is resumed.")
    ] = "atlas.jsonl",
    from_json: Annotated[
        str | None,
        typer.Option("--from-json", metavar="PATH", help="Read the rows from a file of --json; audit nothing."),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="PATH", help="Write the rows as JSON; PATH.gz: compressed; - for stdout."),
    ] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="PATH", help="Write the counts; - for standard output.")
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="PATH", help="Write every result as a table that can be searched, offline."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help="Where rows are made: local, ray or ray:ADDRESS.")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option("--workers", help="Rows at a time; by default 1, on Ray one for each CPU.")
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            help="Time limit per architecture; a law has 0.4 of it, and at least 120 s.",
        ),
    ] = 300,
    memory: Annotated[float, typer.Option("--memory", metavar="GIB", help="Address space per architecture.")] = 4,
    attention: options.AttentionBackend = None,
    settings: Annotated[
        bool,
        typer.Option("--settings", help="Audit variants that cover every pair of settings; by default of 30 names."),
    ] = False,
    date: Annotated[
        str | None, typer.Option("--date", metavar="YYYY-MM-DD", help="Date on the page; by default of the last row.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary and no progress.")] = False,
) -> None:
    """Audit a tiny version of every architecture of transformers that takes text, images or audio.

    The weights are random. Each architecture is audited in its own process. One that crashes, hangs or exceeds its
    memory costs one row. A run that was killed continues with the same store.

    \b
    Examples:
      orderproof atlas --workers 4 --html atlas.html --json atlas.json.gz
      orderproof atlas bert llama mamba
      orderproof atlas --settings llama --store settings.jsonl --markdown settings.md
      orderproof atlas --settings --engine ray:auto --store settings.jsonl
      orderproof atlas --from-json docs/evidence/atlas/atlas.json.gz --html table.html
    """
    from orderproof.report.file_output import check_writable

    check_writable(json, markdown, html)
    check_date(date)
    if from_json is not None:
        if names:
            raise UsageError(f"expected no NAME with --from-json, which audits nothing; got {' '.join(names)}")
        options.check_exists(from_json, "an atlas, written by --json")
        from orderproof.atlas.document import read_document

        document = read_document(from_json)
        document = document if date is None else document.model_copy(update={"date": date})
        outputs = _outputs(document, settings=settings, json=json, markdown=markdown, html=html)
        _write_outputs(document, from_json, outputs, quiet=quiet)
        return
    for name in names or ():
        check_spec(ARCH_PREFIX + name.removeprefix(ARCH_PREFIX))
    with atlas_progress(quiet=quiet) as progress:
        progress((), 0, 1)
        from orderproof.atlas.runner import AtlasRequest, requested_document, select_architectures, update_store
        from orderproof.atlas.store import AtlasStore
        from orderproof.atlas.worker import Limits

        chosen = select_architectures(names or ())
        if settings:
            from orderproof.atlas.settings import selected_variants

            chosen = selected_variants(chosen if names else ())
        request = AtlasRequest(
            chosen,
            attention=attention,
            workers=workers,
            engine=engine,
            limits=Limits(seconds=timeout, memory_gib=memory),
        )
        interrupted = False
        with AtlasStore(store) as opened:
            try:
                update_store(request, opened, progress)
            except KeyboardInterrupt:
                interrupted = True
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    document = requested_document(request, opened, date=date, machine=machine)
    outputs = _outputs(document, settings=settings, json=json, markdown=markdown, html=html)
    _write_outputs(document, str(opened.path), outputs, quiet=quiet)
    if interrupted:
        raise KeyboardInterrupt


def _outputs(
    document: AtlasDocument, *, settings: bool, json: str | None, markdown: str | None, html: str | None
) -> tuple[Output, ...]:
    """The rows, the counts of the architectures or of their settings, and the table."""
    from orderproof.atlas.page import page
    from orderproof.atlas.settings_page import settings_page
    from orderproof.atlas.table import table_page

    summary = settings_page if settings else page
    table = partial(table_page, document, summary="settings.html" if settings else "atlas.html")
    return (json, document.write), (markdown, rendered(partial(summary, document))), (html, rendered(table))


def _write_outputs(document: AtlasDocument, source: str, outputs: Sequence[Output], *, quiet: bool) -> None:
    from orderproof.atlas.counts import summary

    written = write_outputs(*outputs)
    if not quiet:
        console = report_console([str(path) for path, _ in outputs if path is not None])
        console.print(summary(document), soft_wrap=True)
        console.print(f"rows: {source}", highlight=False)
        print_written(console, written)


def check_date(date: str | None) -> None:
    """Raises `UsageError` if the date is not in ISO format."""
    try:
        dt.date.fromisoformat(date or "2000-01-01")
    except ValueError:
        raise UsageError(f"expected --date YYYY-MM-DD; got {date!r}") from None


AtlasProgress = Callable[[Sequence[str], int, int], None]  # the names in progress, the rows done, and in all


@contextmanager
def atlas_progress(*, quiet: bool) -> Iterator[AtlasProgress]:
    """A progress display on standard error, as lines if it is no terminal. No thread, because this process forks."""
    if quiet:
        yield lambda running, done, total: None
    elif has_live_display():
        with _live_progress() as show:
            yield show
    else:
        write_line = StageLines().write

        def show_line(running: Sequence[str], done: int, total: int) -> None:
            if running or not done:  # not at the end
                write_line(f"auditing {', '.join(running)}, {done} of {total} done" if running else "loading")

        yield show_line


@contextmanager
def _live_progress() -> Iterator[AtlasProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("left:"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, auto_refresh=False, speed_estimate_period=600) as display:
        task = display.add_task("loading", total=None)
        counting = False

        def show(running: Sequence[str], done: int, total: int) -> None:
            nonlocal task, counting
            if not counting and running:  # a new task: rows of an earlier run do not count towards the speed
                display.remove_task(task)
                task, counting = display.add_task("", completed=done, total=total), True
            text = ", ".join(running) if counting else "loading"
            display.update(task, description=f"{text[:40]:<40}", completed=done, total=total if counting else None)
            display.refresh()

        yield show
