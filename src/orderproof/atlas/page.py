"""The Markdown page of the atlas: the rows counted, grouped and listed. The same document gives the same page."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.atlas.counts import (
    OUTCOME_ORDER,
    VERDICT_ORDER,
    LawCounts,
    assumptions,
    code_span,
    entry_summary,
    expectation_text,
    is_check,
    is_without_graph,
    law_counts,
    law_label,
    measured_by_part,
    shown_outcome,
    undecided_reason,
    undecided_reasons,
)
from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.introduction import INTRODUCTION, facts
from orderproof.atlas.page_failures import alias_section, failure_section, prover_fault_sections
from orderproof.atlas.row import AtlasRow, LawResult
from orderproof.laws import entry_map_law, find_law, measured_laws
from orderproof.records.audit import RECORDED_CALL_ASSUMPTION, Outcome
from orderproof.report import phrases
from orderproof.report.markdown_table import markdown_table

EXAMPLES = 3  # architectures named with a reason
_OUTCOME_SIGNS: dict[Outcome, str] = {"undecided": "?", "not_applicable": "-"}
SIGNS = "pass or fail of a check, yes or no of a property, ? undecided, - not applicable, ! not as expected"


def page(document: AtlasDocument) -> str:
    """The page of a document whose rows are sorted by name."""
    rows = document.rows
    audited = [row for row in rows if row.laws]
    sections = [
        INTRODUCTION,
        facts(document),
        _counts(audited),
        *prover_fault_sections(audited),
        _unexpected(audited),
        _vacuous(audited),
        _undecided(audited),
        _assumptions(audited),
        _entry_maps(audited),
        _measured(audited),
        _other_outputs(audited),
        failure_section(rows),
        alias_section(rows),
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
        "architecture, a defect of it, or a wrongly recognized kind. [Findings](findings/README.md) explains the laws "
        "that should hold and are refuted, each with a script that needs transformers only."
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
         _named([name for name, _ in members])]
        for law, operator, _, members in undecided_reasons(rows)
    ]  # fmt: skip
    if not lines:
        return "## Undecided\n\nNone."
    text = (
        "Grouped by the operator at which the proof stopped. The reason is that of the first example; sizes differ in "
        "the others. Laws that are undecided because the graph [cannot be recorded](#cannot-be-recorded) are left out."
    )
    return f"## Undecided\n\n{text}\n\n" + markdown_table(
        ["times", "law", "operator", "reason", "examples"], lines, right=(0,)
    )


def _assumptions(rows: Sequence[AtlasRow]) -> str:
    lines = [
        [f"{use.laws.total():,}", use.text.replace("|", "\\|"),
         ", ".join(f"{law}: {proofs:,}" for law, proofs in sorted(use.laws.items())), _named(use.architectures)]
        for use in assumptions(rows)
    ]  # fmt: skip
    text = f"Every proof holds {RECORDED_CALL_ASSUMPTION}."
    if not lines:
        return f"## Assumptions\n\n{text}"
    text += (
        " Some of the proofs for the first output have further assumptions. The wording is that of the first example; "
        "sizes and lines differ in the others. *As traced* means that parts of the model that read values of "
        "its inputs were replaced in order to record it."
    )
    return f"## Assumptions\n\n{text}\n\n" + markdown_table(
        ["proofs", "assumption", "laws", "examples"], lines, right=(0,)
    )


def _entry_maps(rows: Sequence[AtlasRow]) -> str:
    measured = {law.name for law in measured_laws()}
    applicable = {law_label(each) for row in rows for each in row.laws if each.verdict != "not_applicable"}
    labels = sorted({law_label(each) for row in rows for each in row.laws if each.law not in measured} & applicable)
    lines, complete, mapped = [], 0, 0
    for row in rows:
        results = {law_label(each): each for each in row.laws}
        whole = next((each for each in row.laws if each.law == entry_map_law().name), None)
        completeness = whole.entries_complete if whole is not None else None
        mapped += completeness is not None
        complete += completeness is True
        lines.append(
            [
                row.name,
                row.model_kind,
                *(_sign(results.get(label)) for label in labels),
                {True: "yes", False: "no", None: "-"}[completeness],
                _theorems(row),
                "; ".join(entry_summary(row.entries)),
            ]
        )
    text = (
        f"Signs: {SIGNS}. An entry map is complete if the graph with the constants at its entries made equal for every "
        "position is proved permutation-equivariant: order enters there and nowhere else. This is so for "
        f"{complete:,} of {mapped:,} architectures. The last column names the origin of each constant and the operator "
        "at which it meets the tokens. *For every length* says of each proved law if it is a "
        "[theorem](explanation/theorems.md) for every length; it is empty in rows of earlier versions."
    )
    head = ["architecture", "kind of model", *labels, "map complete", "for every length", "where order enters"]
    return f"## Architectures\n\n{text}\n\n" + markdown_table(head, lines)


def _theorems(row: AtlasRow) -> str:
    """``yes: OP201 causal, OP204 batch; no: OP101 permutation``; empty if the row does not say it."""
    by_answer = {a: [law_label(each) for each in row.laws if each.theorem == a] for a in ("yes", "no")}
    return "; ".join(f"{answer}: {', '.join(labels)}" for answer, labels in by_answer.items() if labels)


def _sign(each: LawResult | None) -> str:
    if each is None:
        return ""
    outcome = shown_outcome(each)
    return _OUTCOME_SIGNS.get(outcome, outcome) + ("" if each.expectation_met else "!")


def _measured(rows: Sequence[AtlasRow]) -> str:
    laws = [law for law in measured_laws() if any(each.law == law.name for row in rows for each in row.laws)]
    if not laws:
        return ""
    lines = [
        [f"{row.name}, {part}" if part else row.name, part or row.model_kind,
         *(_sign(results.get(law.name)) for law in laws)]
        for row in rows
        for part, results in measured_by_part(row, [law.name for law in laws]).items()
    ]  # fmt: skip
    head = ["architecture", "kind of model", *(f"{law.code} {law.name}" for law in laws)]
    text = f"Measured laws, each by several calls of the model and a positive control. Signs: {SIGNS}."
    return f"## Measured laws\n\n{text}\n\n" + markdown_table(head, lines)


def _other_outputs(rows: Sequence[AtlasRow]) -> str:
    lines = [
        [row.name, each.output, law_label(each), each.verdict, code_span(each.witness or each.reason)]
        for row in rows
        for each in row.other_output_laws
        if not each.expectation_met and not is_without_graph(row, each)
    ]
    if not lines:
        return ""
    text = (
        "Results for the other outputs that are undecided or not as expected. The expectation is that of the model, "
        "not of the output."
    )
    return f"## Other outputs\n\n{text}\n\n" + markdown_table(
        ["architecture", "output", "law", "verdict", "evidence"], lines
    )


def _named(names: Sequence[str]) -> str:
    rest = len(names) - EXAMPLES
    return ", ".join(names[:EXAMPLES]) + (f" and {rest} more" if rest > 0 else "")
