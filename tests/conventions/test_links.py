"""Causes of ports and remedies of laws name questions that exist, and the page has a section for each."""

import re
from pathlib import Path
from typing import get_args

from orderproof.conventions import questions_of
from orderproof.laws import measured_laws, port_laws, proved_laws
from orderproof.ports.phrases import CONVENTIONS
from orderproof.records.audit import PortCauseName
from orderproof.records.conventions import TABLE, FunctionKind, named_as_convention

ROOT = Path(__file__).parents[2]
LAWS = (*measured_laws(), *port_laws(), *proved_laws())
QUESTIONS = {question.name for kind in get_args(FunctionKind) for question in questions_of(kind)}


def named_in(text: str) -> set[str]:
    return set(re.findall(r"#(\w+)", text[text.index(TABLE) :])) if TABLE in text else set()


def test_each_cause_that_is_a_convention_has_a_question():
    assert set(CONVENTIONS) <= set(get_args(PortCauseName))
    assert set(CONVENTIONS.values()) <= QUESTIONS


def test_each_question_that_a_remedy_names_exists():
    named = {question for law in LAWS for question in named_in(getattr(law, "remedy", ""))}
    assert {"window", "masked_row", "causal_past", "after_the_end"} <= named
    assert named <= QUESTIONS


def test_the_page_has_a_section_for_each_named_question():
    page = (ROOT / TABLE).read_text(encoding="utf-8")
    named = set(CONVENTIONS.values()) | {question for law in LAWS for question in named_in(getattr(law, "remedy", ""))}
    assert {name for name in named if f"\n## {name}\n" not in page} == set()


def test_several_conventions_are_one_sentence():
    expected = f"It is a convention in which libraries differ: {TABLE}#window, #sinks."
    assert named_as_convention("window", "sinks") == expected
