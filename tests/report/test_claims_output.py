"""Claims on a terminal, as Markdown and as JSON: the same words, and nothing a text could act as."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from orderproof.records.claims import ClaimCheckRecord, ClaimRecord, ClaimsReport
from orderproof.report.claims_markdown import render_claims_markdown
from orderproof.report.claims_terminal import render_claims
from tests.report.examples import HOSTILE


def check(text: str = "rows move", *, found: str = "proved", expected: str = "holds") -> ClaimCheckRecord:
    return ClaimCheckRecord(
        statement=text, subject=f"{text} there.", law="OP101 permutation", verdict=found, expected_answer=expected,
        claimed_answer="holds", evidence=(f"{text} 3 steps",),
    )  # fmt: skip


def record(text: str = "rows move", *, verdict: str = "proved", found: str = "proved") -> ClaimsReport:
    claim = ClaimRecord(
        number=1, name="rows", statement=f"{text}.", verdict=verdict, documented_verdict="proved",
        matches_documentation=verdict == found == "proved",
        exact_statement=f"{text} exactly.", conditions=(f"{text} where",), source=text,
        theorems=("folder.file.rows_move",),
        checks=(check(text, found=found),),
    )  # fmt: skip
    return ClaimsReport(orderproof="0", claims=(claim,), versions={"torch": "2"})


def printed(found: ClaimsReport) -> str:
    stream = io.StringIO()
    render_claims(found, Console(file=stream, width=100))
    return stream.getvalue()


def test_a_claim_is_printed_with_its_verdict_conditions_and_evidence():
    text = printed(record())
    assert text.startswith("1  rows move. PROVED\n")
    assert "exactly  rows move exactly." in text
    assert "where    rows move where" in text
    assert "rows move: PROVED (OP101 permutation)" in text
    assert "rows move 3 steps" in text
    assert "in Coq   rows_move (proofs/folder/file.v)" in text
    assert text.endswith("exit code 0: every claim has its documented verdict, and every check its expected result\n")


@pytest.mark.parametrize(
    ("verdict", "found", "message"),
    [
        ("refuted", "refuted", "claim 1 is documented as PROVED and is REFUTED"),
        ("proved", "refuted", "claim 1 is PROVED, with 1 unexpected result"),
    ],
)
def test_a_mismatch_with_the_documentation_is_reported(verdict: str, found: str, message: str):
    made = record(verdict=verdict, found=found)
    assert made.exit_code == 1
    text = printed(made)
    assert f"exit code 1: {message}" in text
    assert "REFUTED (OP101 permutation) expected: holds" in text
    assert "**refuted**, expected: holds" in render_claims_markdown(made)


def test_markdown_holds_a_table_and_a_section_for_each_claim():
    text = render_claims_markdown(record())
    assert "| 1 | rows move. | proved |" in text
    assert "## 1. rows move." in text
    assert "**Proved.** rows move exactly." in text
    assert "- rows move: proved (OP101 permutation)" in text
    assert "Machine-checked: rows\\_move (proofs/folder/file.v)" in text
    assert text.endswith("Versions: torch 2\n")


def test_no_text_of_a_claim_acts():
    made = record(HOSTILE)
    shown = printed(made)
    assert "\x1b" not in shown
    markdown = render_claims_markdown(made)
    assert "<script" not in markdown
    assert "<img" not in markdown


def test_json_reads_back_as_what_it_was():
    made = record()
    assert ClaimsReport.from_json(made.to_json()) == made
    assert '"schema": 2' in made.to_json()
    assert '"kind": "claims"' in made.to_json()
