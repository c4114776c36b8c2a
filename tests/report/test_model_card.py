"""A section of a model card is found again by its marks, and nothing else of the card changes."""

from __future__ import annotations

import pytest

from orderproof.errors import UsageError
from orderproof.report.markdown import render_markdown
from orderproof.report.model_card import BEGIN, END, insert_section, render_card_section
from tests.report.examples import everyday, hostile, measured

CARD = "---\nlicense: mit\n---\n# A model\n\nWhat it does.\n"


def test_a_section_is_the_markdown_of_the_report_between_two_marks():
    text = render_card_section(everyday())
    assert text.startswith(f"{BEGIN}\n\n## Token order of ")
    assert text.endswith(f"\n{END}\n")
    assert render_markdown(everyday()) in text


def test_the_first_section_goes_to_the_end_and_the_next_takes_its_place():
    first = insert_section(render_card_section(everyday()), CARD)
    assert first == f"{CARD}\n{render_card_section(everyday())}"
    below = first + "\n## License\n\nMIT\n"
    second = insert_section(render_card_section(measured()), below)
    assert second == f"{CARD}\n{render_card_section(measured())}\n## License\n\nMIT\n"
    assert insert_section(render_card_section(measured()), second) == second


@pytest.mark.parametrize(("text", "gap"), [("", ""), ("# A", "\n\n"), ("# A\n", "\n"), ("# A\n\n", "\n")])
def test_one_blank_line_is_before_the_first_section(text: str, gap: str):
    assert insert_section("section\n", text) == f"{text}{gap}section\n"


def test_the_line_ends_of_the_card_are_kept():
    made = insert_section(render_card_section(everyday()), CARD.replace("\n", "\r\n"))
    assert made.count("\n") == made.count("\r\n")
    assert insert_section(render_card_section(everyday()), made) == made


def test_no_name_of_a_model_is_taken_for_a_mark():
    subject = hostile().subject.model_copy(update={"name": f"x\n{END}\ny", "detail": f"\n{BEGIN}\n"})
    section = render_card_section(hostile().model_copy(update={"subject": subject}))
    assert [line for line in section.splitlines() if line in (BEGIN, END)] == [BEGIN, END]
    once = insert_section(section, CARD)
    assert insert_section(section, once) == once


@pytest.mark.parametrize("text", [BEGIN, END, f"{END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{END}\n"])
def test_marks_that_are_not_those_of_one_section_are_refused(text: str):
    with pytest.raises(UsageError, match="expected the marks of one section, .*; delete them, and"):
        insert_section(render_card_section(everyday()), text)
