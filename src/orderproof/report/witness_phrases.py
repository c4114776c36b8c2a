"""Sentences about a witness: two runs that violate a law."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orderproof.records.audit import Finding, Witness
from orderproof.report import phrases
from orderproof.report.place import shown_place

TOKENS_SHOWN = 64
TOKENS_BEFORE_A_GAP = 3


def changed_positions(witness: Witness) -> frozenset[int]:
    """The positions at which the two sequences of a witness differ."""
    before, after = witness.tokens_before, witness.tokens_after
    places = {i for i in range(max(len(before), len(after))) if before[i : i + 1] != after[i : i + 1]}
    return frozenset(places | {i for i, place in enumerate(witness.permutation or ()) if i != place})


def witness_title(finding: Finding) -> str:
    """``OP201 causal does not hold``; of a property the answer: ``OP101 permutation, sees token order: yes``."""
    if finding.kind == "check" or not finding.trait:
        return f"{phrases.law_title(finding)} does not hold"
    return f"{phrases.law_title(finding)}, {phrases.property_name(finding)}: {phrases.OUTCOME_LABELS[finding.outcome]}"


def witness_outcome(witness: Witness, output: str) -> str:
    """Where the outputs differ most, the value that the law requires there and the model's value.

    Of outputs that must differ and do not, their value.
    """
    index = f"[{', '.join(map(str, witness.output_index))}]" if witness.output_index else ""
    where = f"{output or 'output'}{index}"
    if witness.expected_value is None or witness.actual_value is None:
        return f"{where} differs"
    if witness.expected_value == witness.actual_value:  # of a law that requires a difference
        return f"{where}: {phrases.format_number(witness.actual_value)} in both calls, which must differ"
    expected, actual = phrases.format_number(witness.expected_value), phrases.format_number(witness.actual_value)
    return f"{where}: the law requires {expected}, the model gives {actual}"


def shown_positions(tokens: Sequence[str], marked: Collection[int]) -> list[int]:
    """The positions of the tokens that are shown: the first ones, and those from just before the first marked one."""
    count = len(tokens)
    first = min(marked, default=0)
    if count <= TOKENS_SHOWN or first < TOKENS_SHOWN - 1:
        return list(range(min(count, TOKENS_SHOWN)))
    start = max(TOKENS_BEFORE_A_GAP, min(first - 1, count - TOKENS_SHOWN + TOKENS_BEFORE_A_GAP))
    return [*range(TOKENS_BEFORE_A_GAP), *range(start, min(count, start + TOKENS_SHOWN - TOKENS_BEFORE_A_GAP))]


def more_tokens_text(tokens: Sequence[str], shown: Sequence[int]) -> str:
    """``and 40 more tokens``; empty if all are shown."""
    more = len(tokens) - len(shown)
    return f"and {phrases.pluralize(more, 'more token')}" if more else ""


def witness_origin(witness: Witness) -> str:
    """The first module that shows the difference, and the weights that were used."""
    source = f" ({witness.first_violating_source})" if witness.first_violating_source else ""
    place = witness.first_violating_module or ("the model itself" if source else "")
    first = f"first seen in {place}{source}; " if place else ""
    return first + ("the model's own weights" if witness.weights == "given" else f"random weights, seed {witness.seed}")


def onset_label(finding: Finding) -> str:
    """The label of the lengths from which a measured law is violated, or of the calls in which a law is proved."""
    return "calls" if finding.measurement is None else "lengths"


def same_cause_text(finding: Finding) -> str:
    """One line for a violation whose cause is that of an earlier one; what was compared and by how much it differs."""
    if finding.witness is None:
        compared = phrases.evidence_text(finding).partition("; ")[0]  # a port: the setting follows, as in the first one
        return f"{compared}; the cause is that of {finding.same_cause_as}"
    difference = phrases.format_difference(finding.witness.relative_difference)
    place = shown_place(finding).source
    text = f"{finding.witness.change}: {difference}; the cause is that of {finding.same_cause_as}"
    text += f", {place}" if place else ""
    return f"{text}; {finding.witness.onset}" if finding.witness.onset else text
