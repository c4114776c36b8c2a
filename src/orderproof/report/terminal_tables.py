"""The tables of a terminal report with one row for each finding: checks, properties and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orderproof.records.audit import Finding, Outcome
from orderproof.records.input_role import InputRole
from orderproof.report import phrases
from orderproof.report.law_groups import LawGroup, property_groups

OUTCOME_STYLES: dict[Outcome, str] = {
    "pass": "bold green",
    "fail": "bold red",
    "undecided": "bold yellow",
    "yes": "bold",
    "no": "bold",
    "not_applicable": "dim",
}
_NO_WRAP_COLUMNS = {"code", "result", "answer", "dtype"}  # columns whose cells are never wrapped


def plain_text(content: str, style: str = "") -> Text:
    """Text that is never parsed as markup, with control characters as escape sequences."""
    return Text(phrases.escape_control_characters(content), style=style)


def rich_table(*columns: str) -> Table:
    """A table with a header and no lines; the column ``>x`` is titled x and aligned to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        title = column.removeprefix(">")
        right = title != column
        table.add_column(
            title, justify="right" if right else "left", no_wrap=title in _NO_WRAP_COLUMNS or right, overflow="fold"
        )
    return table


def passed_table(groups: Sequence[LawGroup]) -> Table:
    """The checks that passed, one line for each law, and how each result is known."""
    table = rich_table("code", "check", "result", "how it is known")
    for group in groups:
        known = plain_text(group.short_evidence)
        table.add_row(plain_text(group.first.code), plain_text(group.name), outcome_text(group.first), known)
    return table


def property_table(findings: Sequence[Finding]) -> Table:
    """The properties with yes, no or undecided, one row for each law, and how each answer is known."""
    table = rich_table("code", "property", "answer", "how it is known")
    for group in property_groups(findings):
        known = plain_text(group.short_evidence)
        table.add_row(plain_text(group.first.code), plain_text(group.name), outcome_text(group.first), known)
    return table


def input_table(inputs: Sequence[InputRole]) -> Table:
    """The role of each input, and how it is known."""
    table = rich_table("input", "role", "how it is known")
    for each in inputs:
        table.add_row(plain_text(each.name), plain_text(each.role), plain_text(each.known_by))
    return table


def outcome_text(finding: Finding) -> Text:
    """The outcome of a finding: green and red for checks only."""
    label = phrases.OUTCOME_LABELS[finding.outcome]
    return Text(label if finding.kind == "check" else label.lower(), OUTCOME_STYLES[finding.outcome])


def measurement_table(findings: Iterable[Finding]) -> Table:
    """Every comparison of every measured law with its differences, and the difference of the control."""
    table = rich_table("comparison", ">float32", ">float64")
    for f in findings:
        assert f.measurement is not None
        table.add_row(Text.assemble(plain_text(phrases.law_title(f), "bold"), ": ", outcome_text(f)))
        for comparison in f.measurement.comparisons:
            style = OUTCOME_STYLES["fail"] if (f.outcome, comparison.verdict) == ("fail", "refuted") else ""
            note = phrases.comparison_note(comparison)
            notes = [Padding(plain_text(note, "dim"), (0, 0, 0, 2))] if note else []
            description = Group(plain_text(comparison.description), *notes)
            differences = (phrases.float32_text(comparison), phrases.float64_text(comparison))
            table.add_row(Padding(description, (0, 0, 0, 2)), *(Text(cell, style) for cell in differences))
        if f.measurement.control_difference is not None:
            table.add_row(Padding(Text("control", "dim"), (0, 0, 0, 2)), Text(phrases.control_text(f), "dim"))
    return table
