"""Claims on a terminal, as Markdown and as JSON: the same words, and nothing a text could act as."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from orderproof.claim_record import ClaimRecord, ClaimsRecord, GroundRecord
from orderproof.report.claims_markdown import render_claims_markdown
from orderproof.report.claims_text import render_claims
from tests.report.examples import HOSTILE


def ground(text: str = "rows move", *, found: str = "proved", expected: str = "holds") -> GroundRecord:
    return GroundRecord(
        what=text, subject=f"{text} there.", law="OP101 order_blind", found=found, expected=expected,
        asserted="holds", evidence=(f"{text} 3 steps",),
    )  # fmt: skip


def record(text: str = "rows move", *, verdict: str = "proved", found: str = "proved") -> ClaimsRecord:
    claim = ClaimRecord(
        number=1, name="rows", statement=f"{text}.", verdict=verdict, documented="proved",
        met=verdict == found == "proved",
        exact=f"{text} exactly.", conditions=(f"{text} where",), source=text, grounds=(ground(text, found=found),),
    )  # fmt: skip
    return ClaimsRecord(orderproof="0", claims=(claim,), versions={"torch": "2"})


def printed(found: ClaimsRecord) -> str:
    stream = io.StringIO()
    render_claims(found, Console(file=stream, width=100))
    return stream.getvalue()


def test_a_claim_is_printed_with_its_verdict_its_conditions_and_what_shows_it():
    text = printed(record())
    assert text.startswith("1  rows move. PROVED\n")
    assert "exactly  rows move exactly." in text
    assert "where    rows move where" in text
    assert "rows move: PROVED (OP101 order_blind)" in text
    assert "rows move 3 steps" in text
    assert text.endswith("exit code 0: every claim has the verdict it documents, and every ground is as it says\n")


@pytest.mark.parametrize(
    ("verdict", "found", "said"),
    [
        ("refuted", "refuted", "claim 1 is documented as PROVED and is REFUTED"),
        ("proved", "refuted", "claim 1 is PROVED, with 1 ground not as it says"),
    ],
)
def test_what_is_not_as_documented_is_said(verdict: str, found: str, said: str):
    made = record(verdict=verdict, found=found)
    assert made.exit_code == 1
    text = printed(made)
    assert f"exit code 1: {said}" in text
    assert "REFUTED (OP101 order_blind) expected that it holds" in text
    assert "**refuted**, expected that it holds" in render_claims_markdown(made)


def test_markdown_holds_a_table_and_a_section_for_each_claim():
    text = render_claims_markdown(record())
    assert "| 1 | rows move. | proved |" in text
    assert "## 1. rows move." in text
    assert "**Proved.** rows move exactly." in text
    assert "- rows move: proved (OP101 order\\_blind)" in text
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
    assert ClaimsRecord.from_json(made.to_json()) == made
    assert '"schema": 1' in made.to_json()
    assert '"kind": "claims"' in made.to_json()
