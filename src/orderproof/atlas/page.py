"""The Markdown page of the atlas: the rows counted, grouped and listed. The same document gives the same page."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.atlas.counts import (
    OUTCOME_ORDER,
    VERDICT_ORDER,
    LawCounts,
    code_span,
    expectation_text,
    is_check,
    law_counts,
    law_label,
    shown_outcome,
    undecided_reason,
    undecided_reasons,
)
from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.introduction import METHOD, facts, introduction
from orderproof.atlas.page_failures import alias_section, failure_section, prover_fault_sections
from orderproof.atlas.page_rows import (
    architecture_section,
    assumption_section,
    entry_map_section,
    measured_section,
    named,
    other_output_section,
    theorem_section,
)
from orderproof.atlas.row import AtlasRow, LawResult
from orderproof.laws import find_law
from orderproof.records.audit import Outcome
from orderproof.report import phrases
from orderproof.report.markdown_table import markdown_table


def page(document: AtlasDocument, *, short: bool = False) -> str:
    """The page of a document whose rows are sorted by name; the short one has no table of all architectures."""
    rows = document.rows
    audited = [row for row in rows if row.laws]
    sections = [
        introduction(short=short),
        facts(document),
        _counts(audited),
        theorem_section(audited),
        *prover_fault_sections(audited),
        _unexpected(audited),
        _vacuous(audited),
        _undecided(audited),
        assumption_section(audited, short=short),
        entry_map_section(audited),
        *([] if short else [architecture_section(audited), measured_section(audited), other_output_section(audited)]),
        failure_section(rows, short=short),
        "" if short else alias_section(rows),
        METHOD,
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _counts(rows: Sequence[AtlasRow]) -> str:
    counts = law_counts(rows)
    checks = [each for each in counts if is_check(each.law, each.expected)]
    properties = [each for each in counts if not is_check(each.law, each.expected)]
    text = (
        "Results for the first output. *Expected* is the result expected of that kind of model. The last three columns "
        "count the verdicts. A law is left out for a kind of model if it applies to none of these models."
    )
    sections = ["## Results by law", text]
    if checks:
        sections += ["### Checks", _count_table(checks, ("pass", "fail"))]
    if properties:
        text = "A check without an expectation for a kind of model is listed as a property."
        sections += ["### Properties", text, _count_table(properties, ("yes", "no"))]
    return "\n\n".join(sections)


def _count_table(counts: Sequence[LawCounts], answers: tuple[Outcome, Outcome]) -> str:
    outcomes = [each for each in OUTCOME_ORDER if each in (*answers, "undecided", "not_applicable")]
    head = ["law", "the model", "kind of model", "expected", "architectures", *outcomes, *VERDICT_ORDER]
    lines = [
        [
            each.label,
            find_law(each.law).trait,
            each.model_kind,
            expectation_text(each.law, each.expected),
            f"{each.outcomes.total():,}",
            *(f"{each.outcomes[outcome]:,}" for outcome in outcomes),
            *(f"{each.verdicts[verdict]:,}" for verdict in VERDICT_ORDER),
        ]
        for each in counts
    ]
    return markdown_table([name.replace("_", " ") for name in head], lines, right=range(4, len(head)))


def _unexpected(rows: Sequence[AtlasRow]) -> str:
    lines = [
        [row.name, row.model_kind, law_label(each), _unexpected_result(each), code_span(_evidence(each)),
         code_span(_place(each))]
        for row in rows
        for each in row.laws
        if not each.expectation_met and each.verdict != "undecided"
    ]  # fmt: skip
    title = "## Not as expected"
    if not lines:
        return f"{title}\n\nNone: every decided result is the expected one."
    text = (
        "Decided results other than expected of that kind of model. The reason is an intended property of the "
        "architecture, a defect of it, or a wrongly recognized kind. [Findings](../findings/README.md) explains the "
        "laws that should hold and are refuted, each with a script that needs transformers only."
    )
    return f"{title}\n\n{text}\n\n" + markdown_table(
        ["architecture", "kind of model", "law", "result", "evidence", "where"], lines
    )


def _unexpected_result(each: LawResult) -> str:
    """`fail: refuted, should hold` of a check, `sees token order: no, expected yes (proved)` of a property."""
    expected = expectation_text(each.law, each.expected)
    if is_check(each.law, each.expected):
        return f"fail: {each.verdict}, should {'hold' if expected == 'holds' else 'not hold'}"
    return f"{find_law(each.law).trait}: {shown_outcome(each)}, expected {expected} ({each.verdict})"


def _place(each: LawResult) -> str:
    return each.reason.split(": ", 1)[0] if each.stopped_at_operator else ""


def _evidence(each: LawResult) -> str:
    largest = each.deviation.float64 if each.deviation.float64 is not None else each.deviation.float32
    return (
        each.witness
        or each.reason
        or (f"two runs differ by {phrases.format_difference(largest)}" if largest is not None else "")
    )


def _vacuous(rows: Sequence[AtlasRow]) -> str:
    vacuous = [f"{row.name} ({law_label(each)})" for row in rows for each in row.laws if each.vacuous]
    if not vacuous:
        return ""
    return "## Vacuous proofs\n\nProved because no token's output depends on another token: " + ", ".join(vacuous) + "."


def _undecided(rows: Sequence[AtlasRow]) -> str:
    lines = [
        [f"{len(members):,}", law, code_span(operator) if operator else "-", code_span(undecided_reason(members[0][1])),
         named([name for name, _ in members])]
        for law, operator, _, members in undecided_reasons(rows)
    ]  # fmt: skip
    if not lines:
        return "## Undecided\n\nNone."
    text = (
        "Grouped by the operator at which the proof stopped. The reason is that of the first example; sizes differ in "
        "the others. Laws that are undecided because the graph [cannot be recorded](#failures) are left out."
    )
    return f"## Undecided\n\n{text}\n\n" + markdown_table(
        ["times", "law", "operator", "reason", "examples"], lines, right=(0,)
    )
