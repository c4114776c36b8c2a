"""`orderproof ceiling`: the best that a reader blind to order can score on a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orderproof.cli import options
from orderproof.cli.console import report_console

if TYPE_CHECKING:
    from rich.table import Table

    from orderproof.lab.ceilings import CeilingAt, Ceilings

LONGEST = 36
"""The longest fraction that is printed, in characters; of a longer one how long it is."""
BETTER = {
    "accuracy": "share of the scored places that are right",
    "exact_match": "share of the rows that are right at every place",
    "nats": "cross-entropy a place [nats], where less is better",
}


def ceiling(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A question, as `orderproof list questions`.")],
    settings: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings of the question.")] = None,
    length: Annotated[
        list[int] | None, typer.Option("--length", metavar="N", help="A length; may be repeated. Those tested at.")
    ] = None,
    json: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write JSON; - for standard output.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; files only.")] = False,
) -> None:
    """Work out the best score of a reader blind to order: exactly, before anything is trained.

    Such a reader knows, at a place, the token there and the bag of the others it sees. Who truly scores more knows
    something of the order; who scores no more may only have counted. A decoder of two layers or more can find out
    where tokens stand without being told.

    \b
    Examples:
      orderproof ceiling even_pairs --length 10 --length 200
      orderproof ceiling copy letters=100 --length 5 --json -
    """
    from orderproof.lab.asking import make
    from orderproof.lab.ceilings import ceilings

    found = ceilings(make(question, options.settings(settings)), length)
    if json is not None:
        from orderproof.report.destination import write

        write(found.to_json() + "\n", json)
    if not quiet:
        _print(found, json)


def _print(found: Ceilings, json: str | None) -> None:
    from rich.text import Text

    from orderproof.report.printing import print_block

    console = report_console([json])
    given = "".join(f" {key}={value}" for key, value in found.settings.items())
    print_block(console, Text(f"{found.question}{given}: {found.statement}"), indent=0)
    print_block(console, Text(f"score: {BETTER[found.measure]}; asked of {found.asked_of}"), indent=0)
    print_block(console, Text(f"reader: knows {found.reader}"), indent=0)
    print_block(console, _table(found.lengths), indent=2)
    for how in dict.fromkeys(at.how for at in found.lengths):
        print_block(console, Text(f"worked out: {how}" if how else "no ceiling is known"), indent=0)
    if json not in (None, "-"):
        console.print(f"written: {json}", highlight=False)


def _table(lengths: tuple[CeilingAt, ...]) -> Table:
    from rich.table import Table

    floors = any(at.floor is not None for at in lengths)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("length", "tokens", "ceiling", *(["floor"] if floors else [])):
        table.add_column(column, justify="right")
    table.add_column("exactly", overflow="fold")
    for at in lengths:
        numbers = [at.ceiling, *([at.floor] if floors else [])]
        shown = ["-" if number is None else f"{number:.6g}" for number in numbers]
        table.add_row(str(at.length), str(at.tokens), *shown, _short(at.fraction))
    return table


def _short(fraction: str | None) -> str:
    if fraction is None or len(fraction) <= LONGEST:
        return fraction or "-"
    above, _, below = fraction.partition("/")
    return f"{len(above)} digits / {len(below)} digits"
