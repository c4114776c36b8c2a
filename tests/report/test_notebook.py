"""Reports and findings in Python: print gives the text of the command, a notebook the page in a frame, escaped."""

from __future__ import annotations

import io
from html.parser import HTMLParser

import pytest
from rich.console import Console

from orderproof.records.audit import Report
from orderproof.report import render_text
from orderproof.report.html_page import render_finding_html, render_html
from tests.report.examples import HOSTILE, causal_proof, everyday, hostile, measured
from tests.report.page_examples import off_by_one


class Tags(HTMLParser):
    """Every tag of a text, with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_a_report_shows_itself_as_one_frame_of_its_page():
    made = everyday()
    ((tag, attributes),) = Tags(made._repr_html_()).found
    assert tag == "iframe"
    assert attributes["srcdoc"] == render_html(made)
    assert attributes["sandbox"] == "allow-scripts"
    assert "src" not in attributes


def test_a_finding_shows_itself_as_one_frame_with_its_evidence():
    finding = off_by_one().findings[0]
    ((tag, attributes),) = Tags(finding._repr_html_()).found
    page = attributes["srcdoc"] or ""
    assert (tag, page) == ("iframe", render_finding_html(finding))
    assert page.count("<tr>") == 3
    for words in ("model.py:20", "mask = torch.ones(n, n).tril(1)", "replace the tokens from 1 on"):
        assert words in page
    assert [name for name, _ in Tags(page).found if name == "script"] == []


def test_no_name_of_a_model_ends_the_frame():
    made = hostile()
    assert HOSTILE in made.subject.name
    ((tag, attributes),) = Tags(made._repr_html_()).found
    assert (tag, attributes["srcdoc"]) == ("iframe", render_html(made))
    assert (attributes["title"] or "").startswith("orderproof: <script>")
    for finding in made.findings:
        assert [name for name, _ in Tags(finding._repr_html_()).found] == ["iframe"]
        assert "img" not in [name for name, _ in Tags(render_finding_html(finding)).found]


@pytest.mark.parametrize("make", [everyday, causal_proof, measured, off_by_one, hostile])
def test_a_report_prints_what_the_command_prints(make):
    stream = io.StringIO()
    render_text(make(), Console(file=stream, width=100, no_color=True), details=False)
    assert str(make()) == stream.getvalue().rstrip("\n")
    assert "\x1b" not in str(make())
    assert "\n" not in repr(make())
    assert repr(make()).startswith("<Report ")


def test_a_finding_prints_its_evidence_and_is_one_line_in_a_list():
    finding = off_by_one().findings[0]
    headline, *rows = str(finding).splitlines()
    assert headline == "OP201 causal FAIL: expected to hold, it does not hold (witness)"
    lines = [" ".join(row.split()) for row in rows]
    assert lines[:4] == ["line model.py:20: mask = torch.ones(n, n).tril(1)", "mask 1 ! .", "mask 1 1 !", "mask 1 1 1"]
    assert lines[-2:] == ["edit -mask = torch.ones(n, n).tril(1)", "edit +mask = torch.ones(n, n).tril(0)"]
    assert repr([finding]) == f"[<Finding {headline} at model.py:20>]"
    for made in hostile().findings:
        assert "\x1b" not in str(made) + repr(made)


def test_a_record_without_a_renderer_shows_its_fields():
    scope = everyday().findings[0].scope
    assert repr(scope).startswith("Scope(length=")
    assert Report.from_json(everyday().to_json()) == everyday()
