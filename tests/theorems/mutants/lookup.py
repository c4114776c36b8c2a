"""Mutants of the rules for elements chosen by indices."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.lookup.indexing",
        M("indices_that_differ", "same = same & at.same", "same = same", program="table by later tokens", quick=True),
        M(
            "negative_indices_count_from_the_start",
            "conditional(at_most(0, value), value, value + size)",
            "value",
            program="token before, counted from the end",
            quick=True,
        ),
        M("unknown_index_that_differs", "agrees & same", "agrees", program="table by later tokens", quick=True),
        M("index_of_a_token", "still(fact.dims[dim], BY_INDEX)", "pass", program="moved: upsampled tokens", quick=True),
        M(
            "indices_into_what_is_partly_the_same",
            "any(axis.motion is not Motion.FREE for axis in dim)",
            "not dim",
            program="moved: table by index",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.lookup.gathering",
        M("gathered_tokens", "still(own, BY_INDEX)", "pass", program="moved: token by position", quick=True),
    ),
]
