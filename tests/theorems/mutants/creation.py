"""Mutants of the rules for tensors of numbers."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.creation.filled",
        M("steps_of_one", "first + index(0) * step", "first + index(0)", program="counted in steps of two", quick=True),
        M("start_forgotten", "first + index(0) * step", "index(0) * step", program="counted from one", quick=True),
        M(
            "one_number_by_index",
            "return uniform(call.shape, Motion.FREE)",
            "return uniform(call.shape, Motion.STILL)",
            program="moved: shapes",
            quick=True,
        ),
        M(
            "indices_are_all_the_same",
            "uniform(call.shape, Motion.STILL)",
            "uniform(call.shape, Motion.FREE)",
            program="moved: index of the token",
            quick=True,
        ),
    ),
]
