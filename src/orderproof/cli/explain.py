"""`orderproof explain`: an interactive story about attention, positions and the proof of permutation equivariance."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli.console import report_console
from orderproof.cli.outputs import print_written, write_outputs
from orderproof.optional_packages import missing_packages

FALLBACK_FILE = "orderproof.html"  # the page, where the packages of the server are not installed


def explain(
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the page to a file; - for standard output."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="A report to show, written by audit --json.")
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            "--study", metavar="FILE", help="A study to show, written by compare --json; default: who_did_what."
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1; 0 for any free port.")] = 8642,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address without opening a browser.")] = False,
) -> None:
    """Open an interactive story: why attention needs positional encoding, step by step.

    With --output the page is one self-contained file. Without it a local server delivers the page until Ctrl-C; that
    page can also run the bundled model. Without the packages of the server, the page is written to orderproof.html.

    \b
    Examples:
      orderproof explain
      orderproof explain --output order.html
      orderproof explain --report report.json --port 0 --no-open
    """
    from orderproof.explain import bundled_study, read_study, render_page, write_page
    from orderproof.report.json_input import read_report

    shown_report = None if report is None else read_report(report)
    shown_study = bundled_study() if study is None else read_study(study)
    if output is not None:
        write = partial(write_page, report=shown_report, study=shown_study)
        print_written(report_console([output]), write_outputs((output, write)))
        return
    if missing := missing_packages("starlette", "uvicorn"):
        write_page(FALLBACK_FILE, report=shown_report, study=shown_study)
        typer.echo(f"written: {FALLBACK_FILE}  (the server needs {' and '.join(missing)})")
        _open_in_browser(Path(FALLBACK_FILE).absolute().as_uri(), no_open=no_open)
        return
    from orderproof.explain.server import local_socket, serve

    text = render_page(report=shown_report, study=shown_study, live=True)
    with local_socket(port) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        typer.echo(f"{address}  (Ctrl-C stops the server)")
        sys.stdout.flush()
        _open_in_browser(address, no_open=no_open)
        serve(text, listening)


def _open_in_browser(address: str, *, no_open: bool) -> None:
    if not no_open:
        import webbrowser

        webbrowser.open(address)
