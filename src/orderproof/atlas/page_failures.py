"""The sections of the atlas page on what has no findings: faults of orderproof, failed architectures and aliases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orderproof.atlas.counts import code_span, law_label
from orderproof.atlas.row import CATEGORIES, AtlasRow
from orderproof.report.markdown_table import markdown_table

_ADVICE = "; give example inputs it accepts"
_PROVER_FAULT_TEXTS = ("error in the prover", "internal error", "contradict")


def prover_fault_sections(rows: Sequence[AtlasRow]) -> Iterator[str]:
    """Proofs that two runs contradict and internal errors; no section where there are none."""
    wrong = [
        [row.name, law_label(each), code_span(each.reason)]
        for row in rows
        for each in (*row.laws, *row.other_output_laws)
        if any(sign in each.reason for sign in _PROVER_FAULT_TEXTS)
    ]
    if wrong:
        text = "Proofs that two runs contradict, and audits that raised an internal error. Please report them."
        yield f"## Faults of orderproof\n\n{text}\n\n" + markdown_table(["architecture", "law", "error"], wrong)


def failure_section(rows: Sequence[AtlasRow], *, short: bool) -> str:
    """The architectures without findings, by category; the short page counts them."""
    failed = {
        category: [row for row in rows if row.failure and row.failure.category == category] for category in CATEGORIES
    }
    summary = [[name, f"{len(failed[name]):,}", text] for name, text in CATEGORIES.items() if failed[name]]
    if not summary:
        return "## Failures\n\nNone."
    text = "Architectures without findings, or without a graph. The category is inferred from the error."
    parts = ["## Failures", text, markdown_table(["category", "architectures", "meaning"], summary)]
    for category, members in failed.items():
        if members and not short:
            lines = [[row.name, row.model_kind or "-", code_span(_error_text(row))] for row in members]
            parts += [
                f"### {category.capitalize()}",
                markdown_table(["architecture", "kind of model", "error"], lines),
            ]
    return "\n\n".join(parts)


def _error_text(row: AtlasRow) -> str:
    """The error without the subject's name and the advice to a user who audits this model alone."""
    assert row.failure is not None
    text = row.failure.reason.removeprefix(f"arch:{row.name}: ").split("; wrap ")[0].removesuffix(_ADVICE)
    return text + (
        f" (limit {row.failure.limit:g} GiB)" if row.failure.category == "memory" and row.failure.limit else ""
    )


def alias_section(rows: Sequence[AtlasRow]) -> str:
    """The names whose row is that of another name."""
    lines = [[row.name, row.alias_of] for row in rows if row.alias_of]
    if not lines:
        return ""
    text = "Names with the same configuration class as another name, which has the row of both."
    return f"## Aliases\n\n{text}\n\n" + markdown_table(["name", "see"], lines)
