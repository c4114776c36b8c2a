"""The evidence of a finding as lines of plain text: the same in a failed test, an XML file and an alert.

Control characters in texts that come from a model become escape sequences (`phrases.escape_control_characters`), so
that a line stays one line and XML stays well-formed.
"""

from __future__ import annotations

from orderproof.records.audit import Entry, Finding, Measurement, Witness
from orderproof.report import entry_map_phrases, phrases, summary, witness_phrases
from orderproof.report.place import MASK_LEGEND, mask_lines, mask_of, remedy_code_label, shown_place
from orderproof.report.theorem_phrases import proof_scope_text


def finding_headline(finding: Finding) -> str:
    """``OP201 causal FAIL: expected to hold, it does not hold (witness)``."""
    return phrases.escape_control_characters(summary.expectation_text(finding))


def evidence_rows(finding: Finding) -> list[tuple[str, str]]:
    """Names and values, one line each: the scope of a proof, the law, then the evidence and the remedy."""
    rows = [("proved", proof_scope_text(finding.scope, finding.theorem))] if finding.verdict == "proved" else []
    rows += _place_rows(finding)
    rows += [("law", finding.statement), ("output", finding.output), ("length", str(finding.scope.length))]
    if finding.witness is not None:
        rows += _witness_rows(finding, finding.witness)
    if finding.measurement is not None:
        rows += _measurement_rows(finding, finding.measurement)
    if finding.proof is not None:
        steps = phrases.pluralize(finding.proof.step_count, "step")
        rows.append(("proof", f"{steps}, {phrases.values_used_text(finding.scope, limit=3)}"))
    if finding.vacuous:
        rows.append(("vacuous", "no token can see another"))
    rows += [("entry", entry_line(entry)) for entry in finding.entries]
    repeated = finding.witness is not None and finding.witness.change == finding.reason
    rows += [("reason", "" if repeated else finding.reason), ("to do", finding.remedy)]
    label = remedy_code_label(finding)
    rows += [(label, line) for line in finding.remedy_diff.splitlines()]
    return [(name, phrases.escape_control_characters(value)) for name, value in rows if value]


def _place_rows(finding: Finding) -> list[tuple[str, str]]:
    """The line of an unmet check with its text, and the mask that it computes."""
    if finding.expectation_met:
        return []
    place = shown_place(finding)
    rows = [("because", finding.expected_because)]
    rows.append(("line", f"{place.source}: {place.text}" if place.text else place.source))
    mask = mask_of(finding)
    return rows if mask is None else [*rows, *(("mask", line) for line in mask_lines(mask)), ("", MASK_LEGEND)]


def align_rows(rows: list[tuple[str, str]], *, indent: int = 2) -> list[str]:
    """The rows as lines with aligned values."""
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{' ' * indent}{name:<{width}}  {value}" for name, value in rows]


def entry_line(entry: Entry) -> str:
    """``aten.add.Tensor in embeddings (modeling_bert.py:104): why``."""
    place = f"{entry.operator} in {entry.module or '(the model itself)'}"
    if entry.source:
        place += f" ({entry.source})"
    if entry.node_count > 1:
        place += f" {entry_map_phrases.repetitions(entry)}"
    return f"{place}: {entry.reason}" if entry.reason else place


def _witness_rows(finding: Finding, witness: Witness) -> list[tuple[str, str]]:
    marked = witness_phrases.changed_positions(witness)
    deviation = finding.deviation
    by_dtype = (
        f"float32 {phrases.format_difference(deviation.float32)}, "
        f"float64 {phrases.format_difference(deviation.float64)}"
    )
    outcome = witness_phrases.witness_outcome(witness, finding.output)
    difference = phrases.format_difference(witness.relative_difference)
    random_weights = "" if witness.weights == "given" else f"random, seed {witness.seed}"
    return [
        ("compared" if finding.measurement is not None else "change", witness.change),
        ("before", _marked_tokens(witness.tokens_before, marked)),
        ("after", _marked_tokens(witness.tokens_after, marked)),
        ("differs", f"{outcome}, by {difference} ({by_dtype})"),
        ("first seen", " ".join(filter(None, (witness.first_violating_module, witness.first_violating_source)))),
        (witness_phrases.onset_label(finding), witness.onset),
        ("weights", random_weights),
    ]


def _measurement_rows(finding: Finding, measurement: Measurement) -> list[tuple[str, str]]:
    """One row for each comparison, then the tolerance and how far the control moved the output."""
    rows = []
    for comparison in measurement.comparisons:
        float64 = phrases.float64_text(comparison)
        differences = f"float32 {phrases.float32_text(comparison)}" + (f", float64 {float64}" if float64 else "")
        note = phrases.comparison_note(comparison)
        rows.append(("comparison", f"{comparison.description}: {differences}" + (f" ({note})" if note else "")))
    return [
        *rows,
        ("tolerance", phrases.format_difference(measurement.tolerance)),
        ("control", phrases.control_text(finding)),
    ]


def _marked_tokens(tokens: tuple[str, ...], marked: frozenset[int]) -> str:
    positions, shown = witness_phrases.shown_positions(tokens, marked), []
    for before, i in zip([-1, *positions], positions, strict=False):
        shown += ["..."] * (i > before + 1)
        shown.append(f"«{tokens[i]}»" if i in marked else tokens[i])
    return " ".join(filter(None, [*shown, witness_phrases.more_tokens_text(tokens, positions)]))
