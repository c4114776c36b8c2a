"""The plain command finds each fault of a public report at its line, and no fault in its corrected twin."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from orderproof import audit
from orderproof.report import render_text
from tests.cases.table import CASES, Case


def _is_long(case: Case) -> bool:
    """True of documents in flex attention, of a twin that it records, which take long, and of two in three others."""
    is_twin_left_out = not case.fails and (case.title.startswith("flex") or TWINS.index(case) % 3 != 0)
    return is_twin_left_out or case.title.startswith("flex_documents")


TWINS = [case for case in CASES if not case.fails]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * _is_long(case), id=case.title) for case in CASES]
)
def test_case_ends_as_it_must(case: Case) -> None:
    report = audit(case.spec, laws=[case.law] if case.law else None, kind=case.kind or None, mode=case.mode)
    failed = [finding.law for finding in report.findings if finding.outcome == "fail"]
    assert report.exit_code == (1 if case.fails else 0), [(f.law, f.outcome, f.reason) for f in report.findings]
    assert case.fails in failed or not (case.fails or failed)
    if case.line:
        stream = io.StringIO()
        render_text(report, Console(file=stream, width=200))
        assert case.line in stream.getvalue()
