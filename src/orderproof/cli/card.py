"""`orderproof card`: a section for a model card, from a subject or a finished report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress
from orderproof.errors import UsageError

SOURCE = f"A report written by audit --json, as NAME.json; or what to audit. {options.SUBJECT}"
INTO = "The Markdown file to put the section into: in the place of the one it has, else at its end."


def card(
    source: Annotated[str, typer.Argument(metavar="SUBJECT|REPORT.json", help=SOURCE)],
    into: Annotated[Path | None, typer.Option("--into", metavar="README.md", help=INTO)] = None,
    law: options.Laws = None,
    length: options.Length = None,
    expect: options.Expect = None,
    seed: options.Seed = 0,
    timeout: options.Timeout = 300,
    tiny: options.Tiny = False,
    attention: options.Backend = None,
    token_axis: options.Axis = None,
    allow_network: options.Network = False,
    quiet: options.Quiet = False,
) -> None:
    """Write what is known of a model's token order as a section for its card.

    The section stands between two marks, so that running this again on the same file replaces it. Nothing else of the
    file is touched. The exit code is that of the report.

    \b
    Examples:
      orderproof card report.json                        on standard output
      orderproof card report.json --into README.md       into the card
      orderproof card ./checkpoint --into README.md      audits first
    """
    text = None if into is None else _card(into)
    if source.endswith(".json"):
        if law or expect or length is not None:
            raise UsageError("expected --law, --expect and --length beside a subject; a report is finished")
        from orderproof.report.reading import read_report

        report = read_report(source)
    else:
        from orderproof.auditing import audit
        from orderproof.cli.loading import load_subject

        with progress(quiet=quiet) as tell:
            tell("loading", 0, 1)
            subject = load_subject(
                source, tiny=tiny, attention=attention, seed=seed, token_axis=token_axis, allow_network=allow_network
            )
            expected = options.expectations(expect)
            report = audit(subject, laws=law, length=length, expect=expected, seed=seed, timeout=timeout, progress=tell)
    from orderproof.report.card import placed, render_card
    from orderproof.report.destination import write

    section = render_card(report)
    write(section if text is None else placed(section, text).encode(), "-" if into is None else into)
    if into is not None and not quiet:
        typer.echo(f"written: {into}")
    raise typer.Exit(report.exit_code)


def _card(path: Path) -> str:
    """The text of the card, its line ends as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"expected --into to name a Markdown file that is there; {str(path)!r}: {why}") from None
