"""Reports and findings in Python: `print` gives the text of the command, `repr` one line, a notebook the HTML page.

In a notebook the page is the text of the attribute `srcdoc` of a sandboxed iframe, escaped so that it cannot end the
attribute. The frame runs the page's script only: without `allow-same-origin` it has no access to the notebook or its
cookies.
"""

from __future__ import annotations

import html
import io

from rich.console import Console

from orderproof.records.audit import Finding, Report
from orderproof.records.document import Renderer, register_renderer
from orderproof.report.evidence import align_rows, evidence_rows, finding_headline
from orderproof.report.html_page import render_finding_html, render_html
from orderproof.report.phrases import escape_control_characters
from orderproof.report.place import shown_place
from orderproof.report.summary import summary_sentence
from orderproof.report.terminal import render_text

REPORT_HEIGHT, FINDING_HEIGHT = 640, 420  # [CSS pixels]; the page scrolls
TEXT_WIDTH = 100  # [characters] of a printed report


def report_text(report: Report) -> str:
    """The short report of `orderproof audit`, without colour."""
    stream = io.StringIO()
    render_text(report, Console(file=stream, width=TEXT_WIDTH, no_color=True, force_terminal=False), details=False)
    return stream.getvalue().rstrip("\n")


def finding_text(finding: Finding) -> str:
    """The headline and the evidence of a finding."""
    return "\n".join([finding_headline(finding), *align_rows(evidence_rows(finding))])


def finding_line(finding: Finding) -> str:
    """``OP201 causal FAIL: expected to hold, it does not hold (witness) at model.py:20``."""
    place = "" if finding.expectation_met else shown_place(finding).source
    return escape_control_characters(finding_headline(finding) + (f" at {place}" if place else ""))


def report_iframe(report: Report) -> str:
    """The report's page as one iframe."""
    return _iframe(render_html(report), report.subject.name, REPORT_HEIGHT)


def finding_iframe(finding: Finding) -> str:
    """The page of a finding as one iframe."""
    return _iframe(render_finding_html(finding), finding.law, FINDING_HEIGHT)


def _iframe(page: str, name: str, height: int) -> str:
    title = html.escape(f"orderproof: {name}", quote=True)
    style = f"width:100%;height:{height}px;border:0"
    escaped = html.escape(page, quote=True)
    return f'<iframe sandbox="allow-scripts" style="{style}" title="{title}" srcdoc="{escaped}"></iframe>'


register_renderer(
    Report, Renderer(report_text, lambda report: escape_control_characters(summary_sentence(report)), report_iframe)
)
register_renderer(Finding, Renderer(finding_text, finding_line, finding_iframe))
