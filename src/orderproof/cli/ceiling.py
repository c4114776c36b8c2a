"""`orderproof ceiling`: the best score on a question without token order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orderproof.catalogue.questions import questions
from orderproof.cli import options
from orderproof.cli.console import progress, report_console
from orderproof.cli.outputs import print_written, rendered, write_outputs
from orderproof.registry import lookup
from orderproof.report.file_output import check_writable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from orderproof.lab.ceilings import CeilingReport, LengthCeiling

MAX_FRACTION_CHARACTERS = 36
"""Longer fractions are printed as their numbers of digits."""


def ceiling(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="One of `orderproof list questions`.")],
    settings: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings of the question.")] = None,
    length: Annotated[
        list[int] | None, typer.Option("--length", metavar="N", help="A length; repeatable. Default: the test lengths.")
    ] = None,
    json: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write JSON; - for standard output.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; files only.")] = False,
) -> None:
    """Compute the ceiling of a question: the exact best score of a predictor that ignores token order.

    The predictor knows, at a position, the token there and the bag of the tokens it sees. A model that scores above the
    ceiling uses token order; a model at or below it may only count tokens. A decoder of two layers or more can compute
    positions even without a position encoding.

    \b
    Examples:
      orderproof ceiling even_pairs --length 10 --length 200
      orderproof ceiling copy letters=100 --length 5 --json -
    """
    lookup(question, questions(), "a question")
    given = options.parse_settings(settings)
    check_writable(json)
    with progress(quiet=quiet) as report_progress:
        report_progress(f"computing the ceiling of {question}", 0, 1)
        from orderproof.lab.ceilings import compute_ceilings
        from orderproof.lab.registry import make_question

        report = compute_ceilings(make_question(question, given), length)
    written = write_outputs((json, rendered(lambda: report.to_json() + "\n")))
    if not quiet:
        console = report_console([json])
        _print_report(report, console)
        print_written(console, written)


def _print_report(report: CeilingReport, console: Console) -> None:
    from rich.text import Text

    from orderproof.report.study_phrases import MEASURE_TEXT
    from orderproof.report.terminal_blocks import print_block

    settings = "".join(f" {key}={value}" for key, value in report.settings.items())
    print_block(console, Text(f"{report.question}{settings}: {report.statement}"), indent=0)
    print_block(console, Text(f"score: {MEASURE_TEXT[report.measure]}; for {report.model_kinds}"), indent=0)
    print_block(console, Text(f"predictor: knows {report.observer}"), indent=0)
    print_block(console, _table(report.lengths), indent=2)
    for derivation in dict.fromkeys(at.derivation for at in report.lengths):
        print_block(console, Text(f"derivation: {derivation}" if derivation else "the ceiling is unknown"), indent=0)


def _table(lengths: tuple[LengthCeiling, ...]) -> Table:
    from rich.table import Table

    floors = any(at.floor is not None for at in lengths)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("length", "tokens", "ceiling", *(["floor"] if floors else [])):
        table.add_column(column, justify="right")
    table.add_column("exact", overflow="fold")
    for at in lengths:
        numbers = [at.ceiling, *([at.floor] if floors else [])]
        texts = ["-" if number is None else f"{number:.6g}" for number in numbers]
        table.add_row(str(at.length), str(at.tokens), *texts, _shorten(at.fraction))
    return table


def _shorten(fraction: str | None) -> str:
    if fraction is None or len(fraction) <= MAX_FRACTION_CHARACTERS:
        return fraction or "-"
    numerator, _, denominator = fraction.partition("/")
    return f"{len(numerator)} digits / {len(denominator)} digits"
