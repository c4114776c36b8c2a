"""The two tables of a terminal report that hold a row for every law: the fingerprint and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orderproof.record import Finding, Verdict
from orderproof.report import words

STYLES: dict[Verdict, str] = {
    "proved": "bold green",
    "refuted": "bold red",
    "undecided": "bold yellow",
    "held": "green",
    "not_applicable": "dim",
}
_WHOLE = {"verdict", "expected", "met", "dtype"}  # columns that are never broken


def text(content: str, style: str = "") -> Text:
    """Text that is never read as markup, with control characters spelt out."""
    return Text(words.visible(content), style=style)


def table(*columns: str) -> Table:
    """A table with a header and no lines; a column named ``>x`` is aligned to the right."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        title = column.removeprefix(">")
        right = title != column
        made.add_column(title, justify="right" if right else "left", no_wrap=title in _WHOLE or right, overflow="fold")
    return made


def fingerprint(findings: Sequence[Finding]) -> Table:
    """Every law and output: what was found, and whether that was expected."""
    made = table("code", "law", "verdict", "expected", "met", "in short")
    for f in findings:
        short = words.in_short(f)
        if f.output and len({other.output for other in findings if other.code == f.code}) > 1:
            short = f"{f.output}: {short}"
        met = Text("yes" if f.met else "NO", "" if f.met else "bold red")
        word = Text(words.VERDICTS[f.verdict], STYLES[f.verdict])
        made.add_row(text(f.code), text(words.law(f)), word, Text(words.EXPECTED[f.expected]), met, text(short))
    return made


def measured(findings: Iterable[Finding]) -> Table:
    """Every comparison of every measured law, its differences, and the control's beside them."""
    made = table("compared", ">float32", ">float64")
    for f in findings:
        assert f.measurement is not None
        made.add_row(
            Text.assemble(text(words.name(f), "bold"), ": ", Text(words.VERDICTS[f.verdict], STYLES[f.verdict]))
        )
        for trial in f.measurement.trials:
            style = STYLES[trial.verdict] if trial.verdict == "refuted" else ""
            why = words.doubt(trial)
            what = Group(text(trial.what), *([Padding(text(why, "dim"), (0, 0, 0, 2))] if why else []))
            numbers = (Text(cell, style) for cell in (words.single(trial), words.double(trial)))
            made.add_row(Padding(what, (0, 0, 0, 2)), *numbers)
        if f.measurement.signal is not None:
            made.add_row(Padding(Text("the control", "dim"), (0, 0, 0, 2)), Text(words.control(f), "dim"))
    return made
