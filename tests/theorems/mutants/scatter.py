"""Mutants of the rules for elements written at indices."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.scatter.scatter",
        M(
            "what_was_there",
            "conjunction(placed.same, *(f.same for f in own))",
            "conjunction(*(f.same for f in own))",
            program="feature overwritten",
            quick=True,
        ),
        M(
            "what_is_written",
            "conjunction(placed.same, *(f.same for f in own))",
            "placed.same",
            program="keys selected of the visible ones",
            quick=True,
        ),
        M(
            "written_to_its_own_index",
            'f"along {d}" if d in dims else d',
            "d",
            program="written in reverse",
            quick=True,
        ),
        M(
            "written_by_the_index_of_tokens",
            "own = still(facts[0].dims[dim], BY_INDEX)",
            "own = facts[0].dims[dim]",
            program="moved: first token overwritten",
            quick=True,
        ),
        M(
            "last_of_those_written_in_any_order",
            "call.name in IN_ANY_ORDER",
            "True",
            program="moved: the last token of each group",
            quick=True,
        ),
        M(
            "indices_without_their_tokens",
            "aligned(others, call.context.equal_sizes)",
            "None",
            program="moved: groups by index",
            quick=True,
        ),
        M(
            "large_numbers_written",
            "FALSE if loose is FALSE else TRUE",
            "FALSE",
            program="scatter with a large number",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.scatter.copies",
        M(
            "copied_from_itself",
            "common.place(source, own)",
            "common.place(whole, range(rank))",
            program="large numbers copied to another dtype",
            quick=True,
        ),
    ),
]
