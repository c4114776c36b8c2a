from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from orderproof.records.audit import Finding, Report, Scope, SubjectRecord

SUBJECT = SubjectRecord(name="toy", kind="encoder", parameters=3)


def finding(verdict: str, *, met: bool) -> Finding:
    return Finding(code="OP201", law="causal", verdict=verdict, expectation_met=met, scope=Scope(length=4))


def report(*findings: Finding) -> Report:
    return Report(orderproof_version="0.1.0", subject=SUBJECT, findings=findings)


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([], 3),  # nothing was checked
        ([("undecided", True), ("not_applicable", True)], 3),
        ([("proved", True), ("refuted", True), ("undecided", True)], 0),
        ([("refuted", False)], 1),
        ([("proved", False)], 1),
        ([("undecided", False), ("refuted", False)], 1),
        ([("undecided", False), ("proved", True)], 3),
    ],
)
def test_the_exit_code_says_what_was_not_met(findings, code):
    assert report(*(finding(verdict, met=met) for verdict, met in findings)).exit_code == code


def test_violations_are_decided_and_undecided_ones_are_separate():
    violated, open_, fine = finding("refuted", met=False), finding("undecided", met=False), finding("held", met=True)
    full = report(violated, open_, fine)
    assert full.violations == (violated,)
    assert full.undecided == (open_,)


def test_the_json_names_its_schema_version_and_reads_back():
    full = report(finding("proved", met=True))
    assert json.loads(full.to_json())["schema"] == 2
    assert Report.from_json(full.to_json()) == full


def test_a_record_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        SUBJECT.name = "other"  # type: ignore[misc]


def test_an_unknown_field_is_refused():
    with pytest.raises(ValidationError, match="Extra inputs"):
        Scope(length=4, lenght=5)  # type: ignore[call-arg]


def test_an_unknown_verdict_is_refused():
    with pytest.raises(ValidationError, match="proved"):
        finding("certain", met=True)
