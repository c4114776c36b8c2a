"""Mutants of the rules for rows, and of sums from the start."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.reduction.scan",
        M(
            "own_element_unread",
            "is_after(index(axis), index(bound))",
            "is_after(index(axis), index(bound) + 1)",
            program="next tokens summed",
            quick=True,
        ),
        M(
            "product_stays_ordinary",
            'call.name == "cumprod"',
            "False",
            program="powers of two by a cumulative product",
            quick=True,
        ),
        M(
            "tokens_counted_by_index",
            "still(fact.dims[place], $_what)",
            "pass",
            program="moved: sum of sums from the start",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.reduction.extremes",
        M(
            "places_of_tokens",
            "replace(indices, written=NOTHING) if moves else indices",
            "indices",
            program="moved: the last of the sorted tokens",
            quick=True,
        ),
        M(
            "sorted_tokens_move",
            "replace(axis, motion=Motion.STILL, before=0)",
            "axis",
            program="moved: median of the tokens",
            quick=True,
        ),
    ),
]
