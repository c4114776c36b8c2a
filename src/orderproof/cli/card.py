"""`orderproof card`: a section for a model card, from a subject or a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import progress
from orderproof.cli.subject_argument import check_subject, load_subject
from orderproof.errors import UsageError
from orderproof.subject_spec import parse_layout

SOURCE = f"A report of audit --json, as NAME.json; or a subject to audit. {options.SUBJECT}"
INTO = "The Markdown file that gets the section: an existing section is replaced, else it is appended."


def card(
    source: Annotated[str, typer.Argument(metavar="SUBJECT|REPORT.json", help=SOURCE)],
    into: Annotated[Path | None, typer.Option("--into", metavar="README.md", help=INTO)] = None,
    law: options.Laws = None,
    length: options.Length = None,
    expect: options.Expect = None,
    seed: options.Seed = 0,
    timeout: options.Timeout = 300,
    tiny: options.Tiny = False,
    attention: options.AttentionBackend = None,
    token_axis: options.Axis = None,
    output_axes: options.OutputAxes = None,
    together: options.Together = False,
    role: options.Role = None,
    shape: options.Shape = None,
    example: options.Example = None,
    mode: options.Mode = "eval",
    allow_network: options.AllowNetwork = False,
    quiet: options.Quiet = False,
) -> None:
    """Write how a model uses token order as a section for its model card.

    The section is between two marks, so that the next run on the same file replaces it. The rest of the file is not
    changed. The exit code is that of the report.

    \b
    Examples:
      orderproof card report.json                        prints the section
      orderproof card report.json --into README.md       writes it into the card
      orderproof card ./checkpoint --into README.md      audits first
    """
    text = None if into is None else _card(into)
    layout = parse_layout(
        token_axis, output_axes, together=together, mode=mode, roles=role, shapes=shape, example=example
    )
    if source.endswith(".json"):
        if law or expect or length is not None or layout.stated:
            raise UsageError(
                "expected a subject with --law, --expect or --length; got a report, whose findings are fixed"
            )
        from orderproof.report.json_input import read_report

        report = read_report(source)
    else:
        check_subject(source, tiny=tiny, attention=attention, layout=layout, allow_network=allow_network)
        options.check_laws(law)
        expected = options.parse_expectations(expect)
        with progress(quiet=quiet) as update:
            update(f"loading {source}", 0, 1)
            from orderproof.auditing import audit

            subject = load_subject(
                source, tiny=tiny, attention=attention, seed=seed, layout=layout, allow_network=allow_network,
                timeout=timeout, length=length,
            )  # fmt: skip
            report = audit(
                subject, laws=law, length=length, expect=expected, seed=seed, timeout=timeout, progress=update
            )
    from orderproof.report.file_output import write_file
    from orderproof.report.model_card import insert_section, render_card_section

    section = render_card_section(report)
    write_file(section if text is None else insert_section(section, text).encode(), "-" if into is None else into)
    if into is not None and not quiet:
        typer.echo(f"written: {into}")
    raise typer.Exit(report.exit_code)


def _card(path: Path) -> str:
    """The text of the card with its line ends unchanged."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"expected --into with an existing Markdown file; {str(path)!r}: {why}") from None
