"""The Markdown page of the atlas: the rows counted, grouped and listed. The same document gives the same page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orderproof.atlas.counts import (
    OUTCOME_ORDER,
    VERDICT_ORDER,
    LawCounts,
    assumptions,
    code_span,
    entry_summary,
    expectation_text,
    is_check,
    law_counts,
    law_label,
    measured_by_part,
    shown_outcome,
    undecided_reason,
    undecided_reasons,
)
from orderproof.atlas.document import AtlasDocument
from orderproof.atlas.page_failures import alias_section, failure_section, prover_fault_sections
from orderproof.atlas.row import AtlasRow, LawResult
from orderproof.laws import entry_map_law, find_law, measured_laws
from orderproof.records.audit import Outcome
from orderproof.report import phrases
from orderproof.report.markdown_table import markdown_table

EXAMPLES = 3  # architectures named with a reason
_OUTCOME_SIGNS: dict[Outcome, str] = {"undecided": "?", "not_applicable": "-"}
SIGNS = "pass or fail of a check, yes or no of a property, ? undecided, - not applicable, ! not as expected"

INTRODUCTION = """# The atlas

Written by `orderproof atlas --from-json docs/atlas.json.gz --markdown docs/atlas.md`; not edited by hand. The rows are
in [atlas.json.gz](atlas.json.gz).

The atlas contains the text and vision architectures of transformers. Each architecture is built from its default
configuration, reduced to two layers and a few dozen features, with random weights. Every parameter is moved off its
initial value, and batch norms have the statistics of eight samples. Each is audited in its own process, with limits on
time and memory: every law that can be proved, on the first output and on the others, and every measured law.

A *check* should hold for a kind of model, and passes or fails. A *property* describes the model: yes or no. *Proved*
means a proof on the recorded graph, over the real numbers, for finite activations and every input of that length, under
the assumptions listed below. *Refuted* means two runs that differ by more than rounding. *Held* means that no
comparison showed a difference. *Undecided* results are listed with the operator at which the proof stopped."""


def page(document: AtlasDocument) -> str:
    """The page of a document whose rows are sorted by name."""
    rows = document.rows
    audited = [row for row in rows if row.laws]
    sections = [
        INTRODUCTION,
        "\n".join(f"- {fact}" for fact in _facts(document)),
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


def _facts(document: AtlasDocument) -> Iterator[str]:
    rows = document.rows
    aliases = sum(1 for row in rows if row.alias_of)
    failed = sum(1 for row in rows if row.failure and not row.laws)
    yield f"date: {document.date}"
    yield f"machine: {document.machine}"
    for name, values in (
        ("orderproof", {r.orderproof for r in rows}),
        ("torch", {r.torch for r in rows}),
        ("transformers", {r.transformers for r in rows}),
    ):
        yield f"{name}: {', '.join(sorted(values)) or '-'}"
    shown = {"default": "SDPA if the model supports it, else eager"}
    yield f"attention: {', '.join(sorted({shown.get(r.attention_backend, r.attention_backend) for r in rows})) or '-'}"
    complete = len(rows) >= document.requested
    state = "all" if complete else f"**{len(rows):,}, the others are not yet audited**"
    yield f"finished: {state} of {phrases.pluralize(document.requested, 'architecture')}"
    yield f"of these {len(rows) - aliases - failed:,} have findings, {aliases:,} are aliases, {failed:,} failed"
    yield f"time: {sum(row.seconds for row in rows):,.0f} s, summed over the processes"


def _counts(rows: Sequence[AtlasRow]) -> str:
    counts = law_counts(rows)
    checks = [each for each in counts if is_check(each.law, each.expected)]
    properties = [each for each in counts if not is_check(each.law, each.expected)]
    text = (
        "Results for the first output. *Expected* is the result expected of that kind of model. "
        "[The laws](reference/laws.md) defines each law."
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
        "architecture, a defect of it, or a wrongly recognized kind."
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
        "the others."
    )
    return f"## Undecided\n\n{text}\n\n" + markdown_table(
        ["times", "law", "operator", "reason", "examples"], lines, right=(0,)
    )


def _assumptions(rows: Sequence[AtlasRow]) -> str:
    lines = [[f"{times:,}", law, text.replace("|", "\\|")] for (law, text), times in assumptions(rows)]
    if not lines:
        return ""
    text = "Assumptions of the proofs for the first output, with the number of proofs that use each."
    return f"## Assumptions\n\n{text}\n\n" + markdown_table(["proofs", "law", "assumption"], lines, right=(0,))


def _entry_maps(rows: Sequence[AtlasRow]) -> str:
    measured = {law.name for law in measured_laws()}
    labels = sorted({law_label(each) for row in rows for each in row.laws if each.law not in measured})
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
                "; ".join(entry_summary(row.entries)),
            ]
        )
    text = (
        f"Signs: {SIGNS}. An entry map is complete if the graph with the constants at its entries made equal for every "
        "position is proved permutation-equivariant: order enters there and nowhere else. This is so for "
        f"{complete:,} of {mapped:,} architectures. The last column names the origin of each constant and the operator "
        "at which it meets the tokens."
    )
    head = ["architecture", "kind of model", *labels, "map complete", "where order enters"]
    return f"## Architectures\n\n{text}\n\n" + markdown_table(head, lines)


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
        if not each.expectation_met
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
