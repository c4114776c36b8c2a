"""`orderproof ports`: compare every architecture of transformers with inference engines, one process for each row."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orderproof.cli import options
from orderproof.cli.atlas import atlas_progress
from orderproof.cli.console import report_console
from orderproof.cli.outputs import print_written, rendered, write_outputs
from orderproof.errors import UsageError
from orderproof.subject_spec import ARCH_PREFIX, check_spec

if TYPE_CHECKING:
    from orderproof.atlas.ports.document import PortsDocument


def ports(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Architectures by name. By default all language models, and encoders if the engine takes them.",
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="ENGINE", help="An engine; repeatable. By default every installed one."),
    ] = None,
    scalings: Annotated[
        bool,
        typer.Option("--scalings/--no-scalings", help="Compare every rope scaling that a configuration can state."),
    ] = True,
    store: Annotated[
        str, typer.Option("--store", metavar="PATH", help="Finished rows, one a line. An existing store is resumed.")
    ] = "ports.jsonl",
    from_json: Annotated[
        str | None,
        typer.Option("--from-json", metavar="PATH", help="Read the rows from a file of --json; compare nothing."),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option("--json", metavar="PATH", help="Write the rows as JSON; PATH.gz: compressed; - for stdout."),
    ] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="PATH", help="Write the page; - for standard output.")
    ] = None,
    scripts: Annotated[
        str | None,
        typer.Option("--scripts", metavar="FOLDER", help="Write a script for each kind of difference into a folder."),
    ] = None,
    pages: Annotated[
        str | None,
        typer.Option("--pages", metavar="FOLDER", help="Write a page for each engine; the page of all links there."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help="Where rows are made: local, ray or ray:ADDRESS.")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option("--workers", help="Rows at a time; by default 1, on Ray one for each CPU.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare tiny language models and encoders of transformers with inference engines.

    The weights are random. A run that was killed continues with the same store.

    \b
    Examples:
      orderproof ports --against mlx --markdown ports.md --json ports.json.gz
      orderproof ports mistral qwen2 --against mlx --against ctranslate2
      orderproof ports --against vllm --engine ray:auto --store vllm.jsonl
      orderproof ports --from-json ports.json.gz --markdown ports.md --scripts scripts
    """
    from orderproof.report.file_output import check_writable

    check_writable(json, markdown)
    if from_json is not None:
        if names or against:
            raise UsageError("expected no NAME and no --against with --from-json, which compares nothing")
        options.check_exists(from_json, "an atlas of ports, written by --json")
        from orderproof.atlas.ports.document import read_document

        _write_outputs(
            read_document(from_json), json=json, markdown=markdown, scripts=scripts, pages=pages, quiet=quiet
        )
        return
    for name in names or ():
        check_spec(ARCH_PREFIX + name.removeprefix(ARCH_PREFIX))
    from orderproof.ports.engines.registry import engines, find_engine

    installed = [name for name, engine in engines().items() if engine.is_installed and not engine.needs_target]
    chosen = [find_engine(name) for name in against or installed]
    for one in chosen:
        if one.target:
            raise UsageError(f"expected an engine that loads any checkpoint; got {one.name}, which is one model")
        if not one.is_installed:
            raise UsageError(f"engine {one.name} is not installed: {one.how_to_install}")
    with atlas_progress(quiet=quiet) as progress:
        progress((), 0, 1)
        from orderproof.atlas.ports.document import build_document
        from orderproof.atlas.ports.runner import PortStore, requests, update_store

        wanted = tuple(name.removeprefix(ARCH_PREFIX) for name in names or ())
        rows, interrupted = [], False
        with PortStore(store) as opened:
            asked = list(requests(wanted, chosen, scalings=scalings))
            try:
                rows = update_store(asked, opened, progress, engine=engine, workers=workers)
            except KeyboardInterrupt:
                interrupted = True
                keys = [request.empty_row.key for request in asked]
                rows = [opened.rows[key] for key in keys if key in opened.rows]
    document = build_document(rows, machine=f"{platform.machine()}, {os.cpu_count()} cores")
    _write_outputs(document, json=json, markdown=markdown, scripts=scripts, pages=pages, quiet=quiet)
    if interrupted:
        raise KeyboardInterrupt


def _write_outputs(
    document: PortsDocument, *, json: str | None, markdown: str | None, scripts: str | None, pages: str | None,
    quiet: bool,
) -> None:  # fmt: skip
    from orderproof.atlas.ports.engine_page import time_text
    from orderproof.atlas.ports.groups import difference_groups
    from orderproof.atlas.ports.page import page

    of_all = rendered(lambda: page(document, _relative(pages, markdown)))
    written = write_outputs((json, document.write), (markdown, of_all))
    if scripts is not None:
        written += _write_scripts(document, Path(scripts).expanduser())
    if pages is not None:
        written += _write_pages(document, Path(pages).expanduser())
    if not quiet:
        console = report_console([json, markdown])
        for group in difference_groups(document.rows):
            settings = f"{group.cause.setting}: {group.cause.assumed}" if group.cause else "not explained"
            console.print(f"{group.engine} ({group.variant}): {settings}: {', '.join(group.names)}", highlight=False)
        for name in sorted({row.engine for row in document.rows}):
            if text := time_text([row for row in document.rows if row.engine == name]):
                console.print(f"{name}: {text}", highlight=False)
        console.print(f"{len(document.rows)} rows", highlight=False)
        print_written(console, written)


def _relative(pages: str | None, markdown: str | None) -> str:
    """The folder of the pages of engines, as the page of all links there; empty if they are not written."""
    if pages is None or markdown in (None, "-"):
        return ""
    return os.path.relpath(Path(pages).expanduser(), Path(str(markdown)).expanduser().parent)


def _write_pages(document: PortsDocument, folder: Path) -> Sequence[str]:
    from orderproof.atlas.ports.engine_page import engine_page
    from orderproof.report.file_output import write_file

    folder.mkdir(parents=True, exist_ok=True)
    names = sorted({row.engine for row in document.rows})
    for name in names:
        write_file(engine_page(document, name), folder / f"{name}.md")
    return [str(folder)] if names else []


def _write_scripts(document: PortsDocument, folder: Path) -> Sequence[str]:
    from orderproof.atlas.ports.groups import difference_groups
    from orderproof.atlas.ports.script import has_script, script
    from orderproof.report.file_output import write_file

    folder.mkdir(parents=True, exist_ok=True)
    groups = [group for group in difference_groups(document.rows) if has_script(group)]
    for group in groups:
        write_file(script(group), folder / group.script)
    return [str(folder)] if groups else []
