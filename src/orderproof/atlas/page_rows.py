"""The sections of the atlas page with a line for each architecture, assumption or output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from orderproof.atlas.counts import (
    assumptions,
    code_span,
    entry_summary,
    is_without_graph,
    law_label,
    measured_by_part,
    shown_outcome,
)
from orderproof.atlas.row import AtlasRow, LawResult
from orderproof.laws import entry_map_law, measured_laws
from orderproof.records.audit import RECORDED_CALL_ASSUMPTION, Outcome
from orderproof.report.markdown_table import markdown_table

EXAMPLES = 3  # architectures named with a reason
MANY = 40  # proofs with an assumption that the short page lists
_OUTCOME_SIGNS: dict[Outcome, str] = {"undecided": "?", "not_applicable": "-"}
SIGNS = "pass or fail of a check, yes or no of a property, ? undecided, - not applicable, ! not as expected"


def theorem_section(rows: Sequence[AtlasRow]) -> str:
    """How many proofs of each law are theorems for every length; empty if no row says it."""
    counts: Counter[tuple[str, str]] = Counter(
        (law_label(each), each.theorem) for row in rows for each in row.laws if each.theorem
    )
    if not counts:
        return ""
    lines = [
        [law, f"{counts[law, 'yes'] + counts[law, 'no']:,}", f"{counts[law, 'yes']:,}", f"{counts[law, 'no']:,}"]
        for law in sorted({law for law, _ in counts})
    ]
    text = (
        "A proof is about the recorded length. A [theorem](../../explanation/theorems.md) is a proof of the same law "
        "for every length."
    )
    head = ["law", "proofs", "for every length", "for the recorded length"]
    return f"## Proved for every length\n\n{text}\n\n" + markdown_table(head, lines, right=(1, 2, 3))


def assumption_section(rows: Sequence[AtlasRow], *, short: bool) -> str:
    """The assumptions of the proofs by use; the short page has those of at least `MANY` proofs."""
    uses = list(assumptions(rows))
    lines = [
        [f"{use.laws.total():,}", use.text.replace("|", "\\|"),
         ", ".join(f"{law}: {proofs:,}" for law, proofs in sorted(use.laws.items())), named(use.architectures)]
        for use in uses
        if not short or use.laws.total() >= MANY
    ]  # fmt: skip
    text = f"Every proof holds {RECORDED_CALL_ASSUMPTION}."
    if not uses:
        return f"## Assumptions\n\n{text}"
    text += (
        " Some of the proofs for the first output have further assumptions. The wording is that of the first example; "
        "sizes and lines differ in the others. *As traced* means that parts of the model that read values of "
        "its inputs were replaced in order to record it."
    )
    if len(lines) < len(uses):
        text += (
            f" The table has the assumptions of at least {MANY} proofs; {len(uses) - len(lines):,} others have fewer."
        )
    return f"## Assumptions\n\n{text}\n\n" + markdown_table(
        ["proofs", "assumption", "laws", "examples"], lines, right=(0,)
    )


def entry_map_section(rows: Sequence[AtlasRow]) -> str:
    """How many entry maps are complete."""
    found = [answer for row in rows if (answer := _map_is_complete(row)) is not None]
    text = (
        "An entry map lists the places where order enters a model. It is complete if the graph is proved "
        "permutation-equivariant once the constants at these places are equal for every position: order enters there "
        f"and nowhere else. This is so for {sum(found):,} of {len(found):,} architectures."
    )
    return f"## Entry maps\n\n{text}"


def _map_is_complete(row: AtlasRow) -> bool | None:
    whole = next((each for each in row.laws if each.law == entry_map_law().name), None)
    return whole.entries_complete if whole is not None else None


def architecture_section(rows: Sequence[AtlasRow]) -> str:
    """The sign of each proved law, the entry map and the theorems of each architecture."""
    measured = {law.name for law in measured_laws()}
    applicable = {law_label(each) for row in rows for each in row.laws if each.verdict != "not_applicable"}
    labels = sorted({law_label(each) for row in rows for each in row.laws if each.law not in measured} & applicable)
    lines = []
    for row in rows:
        results = {law_label(each): each for each in row.laws}
        lines.append(
            [
                row.name,
                row.model_kind,
                *(_sign(results.get(label)) for label in labels),
                {True: "yes", False: "no", None: "-"}[_map_is_complete(row)],
                _theorems(row),
                "; ".join(entry_summary(row.entries)),
            ]
        )
    text = (
        f"Signs: {SIGNS}. The last column names the origin of each constant and the operator at which it meets the "
        "tokens. *For every length* says of each proved law if it is a [theorem](../../explanation/theorems.md) for "
        "every length; it is empty in rows of earlier versions."
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


def measured_section(rows: Sequence[AtlasRow]) -> str:
    """The sign of each measured law of each architecture."""
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


def other_output_section(rows: Sequence[AtlasRow]) -> str:
    """The results for other outputs than the first that are undecided or not as expected."""
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


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - EXAMPLES
    return ", ".join(names[:EXAMPLES]) + (f" and {rest} more" if rest > 0 else "")
