"""Findings: whether an expectation is met, what the law adds, and which have one cause."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from orderproof.laws import find_law
from orderproof.laws.law import Law
from orderproof.records.audit import Expectation, Finding, Kind, Scope, Verdict, outcome_of


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


def with_cause(finding: Finding, causes: dict[tuple[str, str], str]) -> Finding:
    """The finding, with the code of an earlier one that has the same cause: their runs first differ at the same line.

    ``causes`` has the code of the first finding by module and line, and gets this one. Layer numbers do not count.
    """
    witness = finding.witness
    if witness is None or finding.expectation_met or not witness.first_violating_source:
        return finding
    module = re.sub(r"\b\d+\b", "*", witness.first_violating_module)
    first = causes.setdefault((module, witness.first_violating_source), finding.code)
    return finding if first == finding.code else finding.model_copy(update={"same_cause_as": first})
