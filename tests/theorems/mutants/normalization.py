"""Mutants of the rules for normalizations."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.normalization.normalization",
        M(
            "one_dimension_fewer",
            "list(range(rank - count, rank))",
            "list(range(rank - count + 1, rank))",
            program="norm over tokens and features",
            quick=True,
        ),
        M(
            "groups_of_one_channel",
            "list(range(2, len(split)))",
            "list(range(3, len(split)))",
            program="groups of features",
            quick=True,
        ),
        M(
            "statistics_of_the_batch",
            "d != 1",
            "d > 1",
            program="norm of each feature of all rows",
            quick=True,
        ),
        M(
            "parameters_that_differ",
            "conjunction(*(f.same for f in others)) is not conjunction()",
            "False",
            program="norm with weights of tokens",
            quick=True,
        ),
        M(
            "groups_of_tokens",
            "channels = still(fact.dims[1], $_what)",
            "channels = fact.dims[1]",
            program="moved: group of all tokens",
            quick=True,
        ),
        M(
            "parameters_as_large_as_a_mask",
            "any((r := f.ranges()).unbounded is not FALSE or r.hidden is not FALSE for f in others)",
            "False",
            program="norm with large weights",
            quick=True,
        ),
    ),
]
