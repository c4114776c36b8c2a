"""`orderproof claims`: the arguments about token order that people make, put to the test."""

from __future__ import annotations

from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress, report_console

NUMBERS = "The numbers of the claims; all without one."


def claims(
    numbers: Annotated[list[int] | None, typer.Argument(metavar="NUMBER", help=NUMBERS)] = None,
    json: options.Json = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="PATH", help="Write Markdown; - for standard output.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Prove or refute what people say about attention and the order of tokens.

    Each claim is run: laws are proved or refuted on recorded graphs, identities checked with symbols, the rest looked
    at in numbers. Exit code 0 where every claim has the verdict it documents, else 1.

    \b
    Examples:
      orderproof claims              all of them
      orderproof claims 1 4          two of them
      orderproof claims --json -     as JSON, schema version 1
    """
    from orderproof.report.destination import check

    check(json, markdown)
    with progress(quiet=quiet) as tell:
        tell("loading", 0, 1)
        from orderproof.claims import numbered, run_claims

        found = run_claims(numbered(numbers or ()), progress=tell)
    from orderproof.report.claims_markdown import render_claims_markdown
    from orderproof.report.claims_text import render_claims
    from orderproof.report.destination import write

    for target, text in ((json, found.to_json() + "\n"), (markdown, render_claims_markdown(found))):
        if target is not None:
            write(text, target)
    if not quiet:
        console = report_console([json, markdown])
        render_claims(found, console)
        if written := [path for path in (json, markdown) if path not in (None, "-")]:
            console.print(f"written: {', '.join(map(str, written))}", highlight=False)
    raise typer.Exit(found.exit_code)
