"""Mutants of logic/ordering.py."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "logic.ordering",
    M(
        "all_by_their_text",
        "self.size > TEXT_ORDER",
        "False",
        program="tests.logic.test_ordering:test_nested_conditions_are_built_without_long_texts",
        quick=True,
    ),
    M(
        "digest_without_the_kind",
        "sha256(type(self).__name__.encode() + _encoded(parts)).digest()",
        "sha256(_encoded(parts)).digest()",
        program="tests.logic.test_ordering:test_expressions_of_the_same_parts_have_different_digests",
        quick=True,
    ),
)
