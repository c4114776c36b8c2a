"""Reports of ports in every format: laws with one cause, and several engines."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from orderproof import audit
from orderproof.records.audit import Report
from orderproof.report.html_page import render_html
from orderproof.report.junit import render_junit
from orderproof.report.markdown import render_markdown
from orderproof.report.sarif import render_sarif
from orderproof.report.summary import exit_code_text
from orderproof.report.terminal import render_text
from tests.ports import planted_masks as masks
from tests.ports.planted_engine import PlantedEngine

LAWS = ["same_prefill", "same_past_window", "same_greedy_tokens"]
HONEST = PlantedEngine(name="honest")
NO_WINDOW = PlantedEngine(name="forgetful", plants=(masks.window(1 << 20),))


@pytest.fixture(scope="module")
def report() -> Report:
    """An engine that passes, and one that fails two laws for one reason."""
    laws = [*LAWS, "same_past_context"]
    report = audit("arch:mistral", against=[HONEST, NO_WINDOW], laws=laws)
    causes = {f.law: f.same_cause_as for f in report.findings if f.output == "forgetful" and f.outcome == "fail"}
    assert causes.items() >= {"same_past_window": "", "same_past_context": "OP606"}.items()
    return report


def text(report: Report, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=400)
    render_text(report, console, details=details)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_failure_with_an_earlier_cause_is_one_line(report: Report) -> None:
    lines = text(report).splitlines()
    heading = lines.index("FAIL OP607 same_past_context (forgetful)")
    assert lines[heading + 1].strip().startswith("measured: a prompt of ")
    assert "differs from token 6 on" in lines[heading + 1]
    assert lines[heading + 1].endswith("; the cause is that of OP606")
    assert not lines[heading + 2]
    assert "the cause is that of OP606" in text(report, details=True)


def test_each_engine_has_its_own_outcome(report: Report) -> None:
    lines = text(report).splitlines()
    passed = lines[lines.index("Passed") :]
    assert "FAIL OP606 same_past_window (forgetful)" in lines
    assert any("OP606  same_past_window (honest)" in line for line in passed)
    assert not any("OP606  same_past_window (forgetful)" in line for line in passed)
    assert "fails OP606 same_past_window (forgetful)" in lines[3]


@pytest.mark.parametrize("render", [render_html, render_junit, render_markdown, render_sarif])
def test_every_format_has_both_engines(report: Report, render: Callable[[Report], str]) -> None:
    document = render(report)
    assert "forgetful" in document
    if render is not render_sarif:  # which has failures only
        assert "honest" in document


def test_the_summary_of_one_engine_names_it_once() -> None:
    report = audit("arch:mistral", against=NO_WINDOW, laws=["same_past_window", "same_past_context"])
    sentence = text(report).splitlines()[3]
    assert sentence == (
        f"{report.subject.name}: forgetful fails OP606 same_past_window and OP607 same_past_context "
        "(sliding_window: 6 in the reference, no window in forgetful); no check passed, 2 failed."
    )
    both = "OP606 same_past_window (forgetful) and OP607 same_past_context (forgetful)"
    assert exit_code_text(report) == f"{both} FAIL: expected to hold, it does not hold (measured)"
