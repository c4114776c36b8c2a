"""The laws that are expected and were not tested are said first, in every format, and `strict` makes them count."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from orderproof.records.audit import Finding, Report, Scope
from orderproof.report.html_page import render_html
from orderproof.report.junit import render_junit
from orderproof.report.markdown import render_markdown
from orderproof.report.sarif import render_sarif
from tests.report import examples
from tests.report.test_html_page import Page
from tests.report.test_terminal import printed, unwrapped

NO_CACHE = "it takes no cache"
SLOW = "not done after 120 s"


def finding(code: str, law: str, verdict: str, reason: str = "", **more: object) -> Finding:
    fields = {"expected": "holds", "expectation_met": verdict != "undecided", "scope": Scope(length=7)} | more
    return Finding(code=code, law=law, verdict=verdict, reason=reason, **fields)


def partly_checked(*more: Finding, strict: bool = False) -> Report:
    """One law is proved, two do not apply, and what is given."""
    findings = (
        finding("OP201", "causal", "proved"),
        finding("OP401", "cached_decoding", "not_applicable", NO_CACHE),
        finding("OP402", "chunked_prefill", "not_applicable", NO_CACHE),
        finding("OP301", "position_shift", "not_applicable", "it takes no position ids", expected="any"),
        *more,
    )
    found = tuple(map(examples.with_outcome, findings))
    return examples.causal_proof().model_copy(update={"findings": found, "strict": strict})


def out_of_time() -> Finding:
    return finding("OP204", "batch", "undecided", SLOW)


def test_laws_that_do_not_apply_are_named_by_reason_before_the_results():
    text = unwrapped(printed(partly_checked(out_of_time()), width=160))
    line = (
        f"- OP401 cached_decoding, OP402 chunked_prefill: not applicable: {NO_CACHE} - OP204 batch: undecided: {SLOW}"
    )
    assert f"Not checked {line}" in text
    assert text.index("Not checked") < text.index("Passed")
    assert "position_shift" not in text.partition("Passed")[0]  # nothing is expected of it


def test_every_format_names_them():
    report = partly_checked(out_of_time())
    laws = "OP401 cached_decoding, OP402 chunked_prefill: not applicable: it takes no cache"
    assert laws in Page(render_html(report)).text
    assert "- " + laws.replace("_", "\\_") in render_markdown(report)
    suite = ET.fromstring(render_junit(report).partition("\n")[2]).find("testsuite/properties")
    assert suite is not None
    assert laws in [p.get("value") for p in suite if p.get("name") == "not_checked"]
    assert laws in json.loads(render_sarif(report))["runs"][0]["properties"]["notChecked"]
    named = json.loads(report.to_json())["not_checked"]
    assert named["not applicable: it takes no cache"] == ["OP401 cached_decoding", "OP402 chunked_prefill"]
    assert named[f"undecided: {SLOW}"] == ["OP204 batch"]


@pytest.mark.parametrize(("strict", "code"), [(False, 0), (True, 3)])
def test_strict_makes_a_law_that_does_not_apply_count(strict: bool, code: int):
    report = partly_checked(strict=strict)
    assert report.exit_code == code
    last = unwrapped(printed(report, width=160)).partition("exit code ")[2]
    assert last.startswith(
        "3: 2 expected laws were not checked; no check failed"
        if strict
        else "0: every check passed; 2 expected laws were not checked (exit code 3 with --strict)"
    )
    suite = ET.fromstring(render_junit(report).partition("\n")[2])
    assert suite.get("errors") == str(2 * strict)
    results = json.loads(render_sarif(report))["runs"][0]["results"]
    assert [r["level"] for r in results] == ["warning"] * (2 * strict)


def test_a_violation_counts_more_than_what_is_not_checked():
    failed = finding("OP204", "batch", "refuted", expectation_met=False)
    assert partly_checked(failed, strict=True).exit_code == 1


def test_a_law_that_applies_to_another_output_was_tested():
    one = finding("OP204", "batch", "proved", output="logits")
    other = finding("OP204", "batch", "not_applicable", "it has no rows", output="loss")
    assert {f.law for f in partly_checked(one, other).untested} == {"cached_decoding", "chunked_prefill"}
    assert partly_checked().model_copy(update={"findings": (one, other), "strict": True}).exit_code == 0


def test_a_decided_property_is_something_checked():
    described = finding("OP101", "permutation", "refuted", expected="any")
    report = partly_checked().model_copy(update={"findings": (described,), "strict": True})
    assert (report.exit_code, report.not_checked) == (0, {})


def test_no_report_without_a_decided_law_ends_with_zero():
    nothing = finding("OP101", "permutation", "undecided", "no rule", expected="any", expectation_met=True)
    report = partly_checked().model_copy(update={"findings": (nothing,)})
    assert report.exit_code == 3
    assert "exit code 3: no law was decided, so nothing was checked; no check failed" in unwrapped(printed(report))


def test_the_json_reads_back():
    report = partly_checked(out_of_time(), strict=True)
    assert Report.from_json(report.to_json()) == report
