"""Claims in a terminal: what people say, the verdict, and what exactly is true."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderproof.claim_record import ClaimRecord, ClaimsRecord, ClaimVerdict, GroundRecord
from orderproof.report import words
from orderproof.report.printing import print_block
from orderproof.report.tables import text

VERDICTS: dict[ClaimVerdict, str] = {
    "proved": "PROVED", "refuted": "REFUTED", "shown": "SHOWN", "undecided": "UNDECIDED"
}  # fmt: skip
STYLES: dict[ClaimVerdict, str] = {
    "proved": "bold green", "refuted": "bold red", "shown": "green", "undecided": "bold yellow"
}  # fmt: skip
HOW = {"law": "", "algebra": "algebra", "graph": "read off the graph", "numbers": "in numbers"}
INDENT = 2


def render_claims(found: ClaimsRecord, console: Console) -> None:
    """Print the claims on the console."""
    for claim in found.claims:
        _claim(claim, console)
        console.print()
    style = "bold red" if found.exit_code else "bold green"
    line = Text.assemble((f"exit code {found.exit_code}", style), ": ", ending(found))
    print_block(console, line, indent=0)


def ending(found: ClaimsRecord) -> str:
    """What the exit code means, naming every claim that decides it."""
    unmet = [claim for claim in found.claims if not claim.met]
    if not unmet:
        return "every claim has the verdict it documents, and every ground is as it says"
    return "; ".join(f"claim {claim.number} {complaint(claim)}" for claim in unmet)


def complaint(claim: ClaimRecord) -> str:
    """What is not as documented."""
    if claim.verdict != claim.documented:
        return f"is documented as {VERDICTS[claim.documented]} and is {VERDICTS[claim.verdict]}"
    bad = words.count(sum(not g.as_expected for g in claim.grounds), "ground")
    return f"is {VERDICTS[claim.verdict]}, with {bad} not as it says"


def how(ground: GroundRecord) -> str:
    """By what it was found: a law, algebra, the graph or numbers."""
    return ground.law or HOW[ground.method]


def surprise(ground: GroundRecord) -> str:
    """What was expected, where it is not what was found."""
    if ground.as_expected:
        return ""
    return "expected that it holds" if ground.expected == "holds" else "expected that it fails"


def _claim(claim: ClaimRecord, console: Console) -> None:
    title = Text.assemble(
        (f"{claim.number}  ", "bold"), text(claim.statement, "bold"), " ",
        (VERDICTS[claim.verdict], STYLES[claim.verdict]),
    )  # fmt: skip
    print_block(console, title, indent=0)
    _pairs([("exactly", text(claim.exact))], console)
    _pairs([("where" if k == 0 else "", text(each)) for k, each in enumerate(claim.conditions)], console)
    for ground in claim.grounds:
        _ground(ground, console)
    _pairs([("source", text(claim.source))], console)


def _ground(ground: GroundRecord, console: Console) -> None:
    line = Text.assemble(
        text(ground.what), ": ", (VERDICTS[ground.found], STYLES[ground.found]), text(f" ({how(ground)})", "dim")
    )
    if surprise(ground):
        line.append(f" {surprise(ground)}", "bold red")
    rows = [("-", line), ("", text(ground.subject, "italic")), *(("", text(each)) for each in ground.evidence)]
    _pairs(rows, console)


def _pairs(rows: Iterable[tuple[str, Text]], console: Console) -> None:
    """Aligned names and values; long values wrap under themselves."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim", min_width=7)
    grid.add_column(overflow="fold")
    for key, value in rows:
        grid.add_row(key, value)
    print_block(console, grid, indent=INDENT)
