"""`orderproof explain`: the page on which words are moved and the proof is watched."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli.extras import need


def explain(
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the page; - for standard output.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="A report to show, from audit --json.")
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option("--study", metavar="FILE", help="A study whose curves to show, as JSON; who_did_what by default."),
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1; 0 for any that is free.")] = 8642,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address and open no browser.")] = False,
) -> None:
    """Open the page that explains: swap words, watch the proof, see which encoding repairs what.

    With --output the page is one file that needs nothing else. Without, it is served on this machine only, until
    Ctrl-C, and can also ask the bundled model.

    \b
    Examples:
      orderproof explain
      orderproof explain --output order.html
      orderproof explain --report report.json --port 0 --no-open
    """
    from orderproof.app import bundled_study, page, read_study, write_page
    from orderproof.report.reading import read_report

    found = None if report is None else read_report(report)
    curves = bundled_study() if study is None else read_study(study)
    if output is not None:
        write_page(output, report=found, study=curves)
        return
    need("the server", "starlette", "uvicorn", extra="app", otherwise="write the page with --output FILE")
    from orderproof.app.server import listen, serve

    text = page(report=found, study=curves, live=True)
    with listen(port) as on:
        address = f"http://127.0.0.1:{on.getsockname()[1]}/"
        typer.echo(f"{address}  (Ctrl-C ends it)")
        sys.stdout.flush()
        if not no_open:
            import webbrowser

            webbrowser.open(address)
        serve(text, on)
