"""Mutants of the rules for softmax."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.softmax.masked_rows",
        M(
            "hidden_entries_of_a_row_without_a_visible_one",
            "conjunction(ranges.hidden, bounded, visible)",
            "conjunction(ranges.hidden, bounded)",
            program="window in reverse",
            quick=True,
        ),
        M("witness_after_the_row", "size - 1", "size", program="strict mask in reverse", quick=True),
    ),
    *mutants_of(
        "theorems.operators.softmax.softmax",
        M(
            "own_entry_of_a_softmax",
            "rows.agrees | zero",
            "rows.placed.same | zero",
            program="weight of the first key",
            quick=True,
        ),
        M(
            "logarithm_of_a_hidden_entry",
            "fact.same & ~fact.zero",
            "fact.same",
            program="tests.theorems.test_programs:test_logarithms_of_hidden_weights_are_not_the_same_in_both_runs",
            quick=True,
        ),
    ),
]
