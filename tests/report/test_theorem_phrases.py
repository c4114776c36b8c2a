"""Proofs for every length in words: one sentence, said first in every report."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from orderproof.records.audit import RECORDED_CALL_ASSUMPTION, Report, Scope, Theorem
from orderproof.report import phrases
from orderproof.report.html_page import render_html
from orderproof.report.junit import render_junit
from orderproof.report.law_groups import LawGroup
from orderproof.report.markdown import escape_markdown, render_markdown
from orderproof.report.sarif import render_sarif
from orderproof.report.summary import recheck_hint, summary_sentence
from orderproof.report.theorem_phrases import lengths_text, proof_scope_text
from tests.report import examples
from tests.report.test_html_page import Page
from tests.report.test_terminal import printed, unwrapped

ROWS = "every batch size of at least 2"
SENTENCES = {
    "OP201": f"for every length of at least 2, {ROWS}, every attention mask (at its real tokens) or none "
    "and every weight",
    "OP202": f"for every length from 2 to 2,048, {ROWS}, every attention mask, every number of layers and every weight",
    "OP203": f"for every length from 3 to 128, {ROWS}, every layout of documents, every mask in them "
    "and every weight, where tokens - 2*batch <= 0 and batch <= 8",
    "OP204": "at 7 tokens for every weight; for every length not proved: aten.fft_fft.default (mixer): it has no rule",
}


def one(code: str) -> Report:
    """The report of one of the findings."""
    report = examples.theorems()
    (finding,) = (f for f in report.findings if f.code == code)
    return report.model_copy(update={"findings": (finding,)})


def failed(code: str) -> Report:
    """The same, if the law was expected to fail."""
    report = one(code)
    changes = {"kind": "check", "expected": "fails", "expectation_met": False, "outcome": "fail"}
    finding = report.findings[0].model_copy(update=changes)
    return report.model_copy(update={"findings": (finding,)})


@pytest.mark.parametrize("code", SENTENCES)
def test_the_sentence_names_lengths_batches_shared_inputs_weights_and_conditions(code: str):
    finding = one(code).findings[0]
    assert proof_scope_text(finding.scope, finding.theorem) == SENTENCES[code]


@pytest.mark.parametrize(
    ("scope", "theorem", "text"),
    [
        (Scope(length=7), None, "for every value of every parameter"),
        (Scope(length=7, weights="these"), None, "for these weights"),
        (
            Scope(length=1, weights="these"),
            Theorem(proved=False),
            "at 1 token for these weights; for every length not proved: no reason is recorded",
        ),
        (Scope(length=7), Theorem(proved=True), f"for every length of at least 2, {ROWS} and every weight"),
    ],
)
def test_a_proof_without_masks_limits_or_theorem(scope: Scope, theorem: Theorem | None, text: str):
    assert proof_scope_text(scope, theorem) == text


@pytest.mark.parametrize("code", SENTENCES)
def test_every_report_says_it_first_about_a_proved_finding(code: str):
    sentence, report = SENTENCES[code], one(code)
    law, outcome = phrases.law_name(report.findings[0]), phrases.OUTCOME_LABELS[report.findings[0].outcome]
    terminal = unwrapped(printed(report, width=200))
    assert f"Proof {code} {law}: proved {sentence} steps" in terminal
    markdown = render_markdown(report)
    assert f"| {outcome.lower()} | proved: {escape_markdown(sentence)} |" in markdown
    assert f"- {code} `{law}`: {escape_markdown(sentence)}" in markdown
    assert f"Proof proved {sentence} steps" in Page(render_html(report)).text
    (output,) = ET.fromstring(render_junit(report).encode()).iter("system-out")
    assert (output.text or "").splitlines()[0].split(maxsplit=1) == ["proved", sentence]


@pytest.mark.parametrize("code", SENTENCES)
def test_an_alert_about_a_proved_finding_says_it_in_its_message(code: str):
    sentence, report = SENTENCES[code], failed(code)
    (failure,) = ET.fromstring(render_junit(report).encode()).iter("failure")
    assert failure.attrib["message"].endswith(f"expected to fail, it holds (proved): {sentence}")
    (result,) = json.loads(render_sarif(report))["runs"][0]["results"]
    assert result["message"]["text"].splitlines()[0].endswith(f"it holds (proved) in arch:toy: {sentence}")


def test_the_summary_starts_with_what_is_proved_for_every_length():
    report = examples.theorems()
    text = unwrapped(printed(report, width=300))
    assert (
        "arch:toy: causal is proved for every length of at least 2; padding is proved for every length from 2 to "
        "2,048; packing is proved for every length from 3 to 128 where tokens - 2*batch <= 0 and 1 more; keeps packed "
        "documents apart; 3 checks passed, none failed."
    ) in text
    causal, padding, batch, _ = report.findings
    other = padding.model_copy(update={"code": "OP299", "law": "other"})
    both = report.model_copy(update={"findings": (causal, padding, batch, other)})
    assert (
        "arch:toy: padding and other are proved for every length from 2 to 2,048; causal is proved for every length of "
        "at least 2; 4 checks passed, none failed."
    ) in unwrapped(printed(both, width=300))
    assert "arch:toy: 1 check passed, none failed." in unwrapped(printed(one("OP204")))


def test_assumptions_of_a_theorem_come_first_and_each_is_said_once():
    assumed = phrases.assumptions(one("OP201"))
    assert list(assumed) == [examples.OVER_REALS, examples.SMALL_SCORES, "of one call: the call changes steps"]
    assert RECORDED_CALL_ASSUMPTION in phrases.assumptions(one("OP204"))
    assert unwrapped(printed(examples.theorems(), width=200)).count(examples.SMALL_SCORES) == 1


def test_a_page_of_a_theorem_with_markup_shows_it_as_text():
    report = one("OP201")
    hostile = Theorem(proved=True, covers=(examples.HOSTILE,), conditions=(examples.HOSTILE,))
    finding = report.findings[0].model_copy(update={"theorem": hostile})
    report = report.model_copy(update={"findings": (finding,)})
    assert examples.HOSTILE not in render_html(report)
    assert "<script>alert" not in render_html(report)
    assert "<img" not in render_markdown(report)
    assert "\x1b" not in printed(report)
    assert ET.fromstring(render_junit(report).encode()).tag == "testsuites"


@pytest.mark.parametrize(
    ("conditions", "end"),
    [
        ((), ""),
        (("tokens >= 3",), " where tokens >= 3"),
        (("batch - 8 <= 0", "tokens >= 3", "tokens <= 9"), " where batch <= 8 and 2 more"),
    ],
)
def test_the_short_text_names_the_conditions(conditions: tuple[str, ...], end: str):
    theorem = Theorem(proved=True, least_length=2, conditions=conditions)
    assert lengths_text(theorem) == "every length of at least 2" + end


def test_outputs_with_other_lengths_are_not_said_together():
    (finding,) = one("OP201").findings
    assert finding.theorem is not None
    shorter = finding.model_copy(
        update={"output": "hidden", "theorem": finding.theorem.model_copy(update={"greatest_length": 8})}
    )
    report = one("OP201").model_copy(update={"findings": (finding, shorter)})
    assert "proved for" not in summary_sentence(report)
    assert LawGroup((finding, shorter)).short_evidence == (
        f"proved for every length of at least 2: {finding.output}; proved for every length from 2 to 8: hidden"
    )
    assert "proved for every length of at least 2" in summary_sentence(one("OP201"))


def test_proofs_without_a_theorem_are_counted_because_they_cannot_be_rechecked():
    (finding,) = one("OP201").findings
    assert recheck_hint(one("OP201")) == ""
    parts = (finding, finding.model_copy(update={"theorem": None}), finding.model_copy(update={"verdict": "refuted"}))
    report = one("OP201").model_copy(update={"findings": parts})
    assert recheck_hint(report) == "2 proofs, of which 1 cannot be rechecked (proved at one length)"


def test_the_sentence_names_a_property_that_hardly_any_model_is_meant_to_lack():
    report = one("OP204")
    changes = {"kind": "property", "expected": "any", "verdict": "refuted", "outcome": "no", "theorem": None}
    finding = report.findings[0].model_copy(update=changes)
    sentence = summary_sentence(report.model_copy(update={"findings": (finding,)}))
    assert f"{report.subject.name}: OP204 batch does not hold; " in sentence
