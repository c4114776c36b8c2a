"""Mutants of the rule for batch normalization."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "batch_norm",
    M(
        "batch_statistics",
        "'.batch_norm.' in $a.$target and $a.$args[5]",
        "False",
        "batch_norm",
    ),
    M(
        "moments_of_each_row",
        "tuple(($d for $d in range(len($fact.shape)) if $d != 1))",
        "tuple(($d for $d in range(len($fact.shape)) if $d > 1))",
        "batch_norm",
    ),
)
