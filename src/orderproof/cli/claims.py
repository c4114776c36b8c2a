"""`orderproof claims`: prove or refute common claims about attention and token order."""

from __future__ import annotations

from typing import Annotated

import typer

from orderproof.catalogue.claims import claim_numbers
from orderproof.cli import options
from orderproof.cli.console import progress, report_console
from orderproof.cli.outputs import print_written, rendered, write_outputs
from orderproof.registry import check_numbers

NUMBERS = "The numbers of the claims; all by default."


def claims(
    numbers: Annotated[list[int] | None, typer.Argument(metavar="NUMBER", help=NUMBERS)] = None,
    json: options.Json = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="PATH", help="Write Markdown; - for standard output.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Prove or refute common claims about attention and token order.

    Each claim is checked: laws are proved or refuted on recorded graphs, identities are verified symbolically, other
    statements numerically. Exit code 0 if every claim has its documented verdict, else 1.

    \b
    Examples:
      orderproof claims              all of them
      orderproof claims 1 4          two of them
      orderproof claims --json -     as JSON, schema version 2
    """
    from orderproof.report.file_output import check_writable

    check_writable(json, markdown)
    check_numbers(numbers or (), claim_numbers(), "the number of a claim")
    with progress(quiet=quiet) as report_progress:
        report_progress("loading the claims", 0, 1)
        from orderproof.claims import run_claims, select_claims

        report = run_claims(select_claims(numbers or ()), progress=report_progress)
    from orderproof.report.claims_markdown import render_claims_markdown
    from orderproof.report.claims_terminal import render_claims

    written = write_outputs(
        (json, rendered(lambda: report.to_json() + "\n")), (markdown, rendered(lambda: render_claims_markdown(report)))
    )
    if not quiet:
        console = report_console([json, markdown])
        render_claims(report, console)
        print_written(console, written)
    raise typer.Exit(report.exit_code)
