"""Reading a module without importing it."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from orderproof.catalogue.source import SourceModule, read_module


def module(text: str) -> SourceModule:
    return SourceModule(Path("part.py"), ast.parse(dedent(text)))


def test_names_stand_for_the_literals_that_they_are_bound_to() -> None:
    read = module(
        """
        from orderproof.diagnosis.rules.scan import LEMMA
        SIZE: int = 3
        PART = Part(name="a", size=SIZE, sizes=(1, -2), lemma=LEMMA)
        """
    )
    given = read.keywords("PART") or {}
    assert {name: read.value(node) for name, node in given.items()} == {
        "name": "a",
        "size": 3,
        "sizes": (1, -2),
        "lemma": "scan_dependence",
    }
    assert read.keywords("LAW") is None


def test_what_is_no_literal_is_refused_with_its_line() -> None:
    read = module('PART = Part(name="a".upper())')
    with pytest.raises(ValueError, match=r"part\.py:1: expected a literal"):
        read.value((read.keywords("PART") or {})["name"])


def test_a_class_has_the_attributes_of_its_bases_and_overrides_them() -> None:
    read = module(
        """
        from orderproof.lab.transcription_question import TranscriptionQuestion
        class Mine(TranscriptionQuestion):
            measure = "nats"
            count: int = len("no literal")
        QUESTION = Mine
        """
    )
    attributes = read.class_attributes("QUESTION")
    assert attributes["measure"] == "nats"
    assert attributes["requires_causal"] is True
    assert attributes["needs_order"] is True
    assert "count" not in attributes


def test_decorators_and_docstrings() -> None:
    read = module(
        '''
        """A part."""
        @rule("lemma", "a", "b")
        def apply(call): ...
        @other
        class Part: ...
        '''
    )
    assert read.docstring == "A part."
    assert [(node.name, arguments) for node, arguments in read.decorated("rule")] == [("apply", ["lemma", "a", "b"])]


def test_a_missing_module_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        read_module("orderproof.laws.proved.nothing")
