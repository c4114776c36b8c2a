"""Claims as Markdown: a table of verdicts, then a section for each with the exact statement and its checks."""

from __future__ import annotations

from orderproof.records.claims import ClaimCheckRecord, ClaimRecord, ClaimsReport
from orderproof.report.claims_terminal import CLAIM_VERDICT_LABELS, method_text, theorem_text, unexpected_text
from orderproof.report.markdown import escape_markdown
from orderproof.report.markdown_table import markdown_table


def render_claims_markdown(report: ClaimsReport) -> str:
    """The report as Markdown."""
    rows = [(str(claim.number), escape_markdown(claim.statement), _verdict(claim)) for claim in report.claims]
    table = markdown_table(("claim", "common form", "verdict"), rows)
    versions = ", ".join(
        f"{escape_markdown(name)} {escape_markdown(version)}" for name, version in report.versions.items()
    )
    parts = ["# Claims about token order", table, *map(_claim_section, report.claims), f"Versions: {versions}"]
    return "\n\n".join(parts) + "\n"


def _verdict(claim: ClaimRecord) -> str:
    label = CLAIM_VERDICT_LABELS[claim.verdict].lower()
    return (
        label
        if claim.matches_documentation
        else f"**{label}** (documented: {CLAIM_VERDICT_LABELS[claim.documented_verdict].lower()})"
    )


def _claim_section(claim: ClaimRecord) -> str:
    lines = [
        f"## {claim.number}. {escape_markdown(claim.statement)}",
        f"**{CLAIM_VERDICT_LABELS[claim.verdict].capitalize()}.** ",
    ]
    lines[-1] += escape_markdown(claim.exact_statement)
    lines.append("\n".join(f"- {escape_markdown(each)}" for each in claim.conditions))
    lines.append("\n".join(map(_check_item, claim.checks)))
    lines.append(f"Source: {escape_markdown(claim.source)}")
    if claim.theorems:
        lines.append(f"Machine-checked: {', '.join(escape_markdown(theorem_text(each)) for each in claim.theorems)}")
    return "\n\n".join(line for line in lines if line)


def _check_item(check: ClaimCheckRecord) -> str:
    label, unexpected = CLAIM_VERDICT_LABELS[check.verdict].lower(), unexpected_text(check)
    verdict = f"**{label}**, {unexpected}" if unexpected else label
    head = f"- {escape_markdown(check.statement)}: {verdict} ({escape_markdown(method_text(check))})"
    return "\n".join(
        [
            head,
            f"    - {escape_markdown(check.subject)}",
            *(f"    - {escape_markdown(each)}" for each in check.evidence),
        ]
    )
