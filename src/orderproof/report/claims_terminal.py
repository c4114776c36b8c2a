"""Claims in a terminal: the common form, the verdict and the exact statement."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderproof.records.claims import ClaimCheckRecord, ClaimRecord, ClaimsReport, ClaimVerdict
from orderproof.report import phrases
from orderproof.report.terminal_blocks import print_block
from orderproof.report.terminal_tables import plain_text

CLAIM_VERDICT_LABELS: dict[ClaimVerdict, str] = {
    "proved": "PROVED", "refuted": "REFUTED", "shown": "SHOWN", "undecided": "UNDECIDED"
}  # fmt: skip
CLAIM_VERDICT_STYLES: dict[ClaimVerdict, str] = {
    "proved": "bold green", "refuted": "bold red", "shown": "green", "undecided": "bold yellow"
}  # fmt: skip
METHOD_LABELS = {"law": "", "algebra": "symbolic", "graph": "read from the graph", "numbers": "numeric"}
INDENT = 2


def render_claims(report: ClaimsReport, console: Console) -> None:
    """Print the claims on the console."""
    for claim in report.claims:
        _print_claim(claim, console)
        console.print()
    style = "bold red" if report.exit_code else "bold green"
    line = Text.assemble((f"exit code {report.exit_code}", style), ": ", exit_code_text(report))
    print_block(console, line, indent=0)


def exit_code_text(report: ClaimsReport) -> str:
    """The reason for the exit code, with every claim that determines it."""
    unmet = [claim for claim in report.claims if not claim.matches_documentation]
    if not unmet:
        return "every claim has its documented verdict, and every check its expected result"
    return "; ".join(f"claim {claim.number} {unmet_text(claim)}" for claim in unmet)


def unmet_text(claim: ClaimRecord) -> str:
    """The difference from the documentation."""
    if claim.verdict != claim.documented_verdict:
        documented = CLAIM_VERDICT_LABELS[claim.documented_verdict]
        return f"is documented as {documented} and is {CLAIM_VERDICT_LABELS[claim.verdict]}"
    unexpected = phrases.pluralize(sum(not check.matches_expectation for check in claim.checks), "unexpected result")
    return f"is {CLAIM_VERDICT_LABELS[claim.verdict]}, with {unexpected}"


def method_text(check: ClaimCheckRecord) -> str:
    """The method of a check: a law, symbolic, read from the graph, or numeric."""
    return check.law or METHOD_LABELS[check.method]


def theorem_text(theorem: str) -> str:
    """A machine-checked theorem with its file."""
    file, _, name = theorem.rpartition(".")
    return f"{name} (proofs/{file.replace('.', '/')}.v)"


def unexpected_text(check: ClaimCheckRecord) -> str:
    """The expected answer, if the check has another one."""
    return "" if check.matches_expectation else f"expected: {check.expected_answer}"


def _print_claim(claim: ClaimRecord, console: Console) -> None:
    title = Text.assemble(
        (f"{claim.number}  ", "bold"), plain_text(claim.statement, "bold"), " ",
        (CLAIM_VERDICT_LABELS[claim.verdict], CLAIM_VERDICT_STYLES[claim.verdict]),
    )  # fmt: skip
    print_block(console, title, indent=0)
    _print_pairs([("exactly", plain_text(claim.exact_statement))], console)
    _print_pairs([("where" if k == 0 else "", plain_text(each)) for k, each in enumerate(claim.conditions)], console)
    for check in claim.checks:
        _print_check(check, console)
    _print_pairs([("source", plain_text(claim.source))], console)
    names = [("in Coq" if k == 0 else "", plain_text(theorem_text(name))) for k, name in enumerate(claim.theorems)]
    _print_pairs(names, console)


def _print_check(check: ClaimCheckRecord, console: Console) -> None:
    line = Text.assemble(
        plain_text(check.statement),
        ": ",
        (CLAIM_VERDICT_LABELS[check.verdict], CLAIM_VERDICT_STYLES[check.verdict]),
        plain_text(f" ({method_text(check)})", "dim"),
    )
    if unexpected := unexpected_text(check):
        line.append(f" {unexpected}", "bold red")
    rows = [
        ("-", line),
        ("", plain_text(check.subject, "italic")),
        *(("", plain_text(each)) for each in check.evidence),
    ]
    _print_pairs(rows, console)


def _print_pairs(rows: Iterable[tuple[str, Text]], console: Console) -> None:
    """Print aligned names and values; long values wrap in their column."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim", min_width=7)
    grid.add_column(overflow="fold")
    for key, value in rows:
        grid.add_row(key, value)
    print_block(console, grid, indent=INDENT)
