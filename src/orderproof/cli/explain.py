"""`orderproof explain`: an interactive story about attention, positions and the proof of permutation equivariance."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli.console import report_console
from orderproof.cli.outputs import print_written, write_outputs
from orderproof.optional_packages import install_command, missing_packages

DEFAULT_FILE = "orderproof-explain.html"  # in the current folder, where there is no server


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
    page can also run the bundled model. Where the server is not installed, the page is written to a file and opened.

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
        write_page(DEFAULT_FILE, report=shown_report, study=shown_study)
        typer.echo(f"written: {DEFAULT_FILE}")
        names = " and ".join(missing)
        typer.echo(f"the server, which can run the bundled model, needs {names}: {install_command('app')}")
        if not no_open:
            open_in_browser(Path(DEFAULT_FILE).resolve().as_uri())
        return
    from orderproof.explain.server import local_socket, serve

    text = render_page(report=shown_report, study=shown_study, live=True)
    with local_socket(port) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        typer.echo(f"{address}  (Ctrl-C stops the server)")
        sys.stdout.flush()
        if not no_open:
            open_in_browser(address)
        serve(text, listening)


def open_in_browser(address: str) -> None:
    """Open an address in the default browser, if there is one."""
    import webbrowser

    webbrowser.open(address)
