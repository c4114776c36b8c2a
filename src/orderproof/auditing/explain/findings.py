"""Findings: whether an expectation is met, what the law adds, and which have one cause."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from orderproof.laws import find_law
from orderproof.laws.law import Law
from orderproof.records.audit import Expectation, Finding, Kind, Remedy, Scope, Verdict, outcome_of
from orderproof.report.place import shown_place

_OF_BOTH_AXES = ("attention_pattern", "batch_composition")  # they compare tokens with rows
_EXCHANGED_AXES = Remedy(
    text="Rows see each other, and no token of a row sees another: the model may have its tokens along axis 0. If the "
    "input is [token, row, width], state --token-axis 0 (in Python token_axis=0). If it is [row, token, width], give "
    "the model its rows first.",
    diff="-nn.TransformerEncoderLayer(width, heads)\n+nn.TransformerEncoderLayer(width, heads, batch_first=True)",
)


def is_met(verdict: Verdict, expected: Expectation) -> bool:
    """True if a verdict is the expected result; a law that is not applicable meets every expectation."""
    if expected == "any" or verdict == "not_applicable":
        return True
    return verdict in (("proved", "held") if expected == "holds" else ("refuted",))


def finding_of(law: Law, verdict: Verdict, reason: str, *, expected: Expectation, scope: Scope, **more: Any) -> Finding:
    """The finding of a law, with further fields of a `Finding`."""
    return Finding(
        code=law.code, law=law.name, verdict=verdict, expected=expected, expectation_met=is_met(verdict, expected),
        scope=scope, reason=reason, **more,
    )  # fmt: skip


def undecide(finding: Finding, reason: str) -> Finding:
    """The finding without its verdict, because of what happened while it was made."""
    update = {"verdict": "undecided", "outcome": "undecided", "reason": reason}
    return finding.model_copy(update={**update, "expectation_met": is_met("undecided", finding.expected)})


def undecide_inapplicable(findings: Sequence[Finding], named: Collection[str]) -> list[Finding]:
    """The findings, undecided for a named law with an expectation that applies to no output: nothing was checked."""
    applied = {f.law for f in findings if f.verdict != "not_applicable"}
    return [
        undecide(f, f"does not apply, so nothing was checked: {f.reason}")
        if f.law in named and f.law not in applied and f.expected != "any"
        else f
        for f in findings
    ]


def with_law(finding: Finding, *, stated: bool) -> Finding:
    """The finding with its law's statement and trait, as a check or a property.

    A finding is a check if it has an expectation that the user stated (`stated`) or that a law of kind check has for
    this kind of model, or if an expectation is not met. Every other finding is a property of the model.
    """
    law = find_law(finding.law)
    expects = finding.expected != "any"
    check = (expects and (stated or law.kind == "check")) or not finding.expectation_met
    kind: Kind = "check" if check else "property"
    outcome = outcome_of(kind, finding.verdict, met=finding.expectation_met, trait_if=law.trait_if)
    return finding.model_copy(update={"statement": law.statement, "trait": law.trait, "kind": kind, "outcome": outcome})


def with_causes(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings; those of a cause that an earlier law has too get the code of that law.

    Violations at one line have one cause, whichever layer shows it. So have laws that hold and should not, with one
    remedy: a model without positions fails several. Where rows see each other and no token of a row sees another, the
    model has its tokens along the axis of rows: laws of tokens and of other rows are asked of the wrong axes.
    """
    causes: dict[str, str] = {}
    found = []
    for f in _of_exchanged_axes(findings):
        has_none = f.expectation_met or f.verdict == "undecided" or f.same_cause_as
        cause = "" if has_none else shown_place(f).source or _absence(f)
        first = causes.setdefault(cause, f.code) if cause else f.code
        found.append(f if first == f.code else f.model_copy(update={"same_cause_as": first}))
    return tuple(found)


def _of_exchanged_axes(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; with exchanged axes that of `batch` names the axis, and is the cause of others."""
    rows = next((f for f in findings if f.law == "batch" and f.verdict == "refuted" and not f.expectation_met), None)
    if rows is None or not any(f.vacuous for f in findings):
        return list(findings)
    names_axis = {"remedy": _EXCHANGED_AXES.text, "remedy_diff": _EXCHANGED_AXES.diff}
    found = []
    for f in findings:
        update = names_axis if f.law == rows.law and f.verdict == "refuted" else {}
        if not f.expectation_met and (f.vacuous or f.law in _OF_BOTH_AXES):
            update = {"same_cause_as": rows.code}
        found.append(f.model_copy(update=update))
    return found


def _absence(finding: Finding) -> str:
    """The remedy of a law that holds and should not: it names the part that the model lacks."""
    return finding.remedy if finding.verdict in ("proved", "held") else ""
