"""Mutants of the rules for pooling and resampling."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "pooling",
    M(
        "pooled_by_place",
        "any(($is_moved($m) for $m in $fact.$moves[$lead:]))",
        "False",
        "avg_pool2d",
    ),
    M(
        "lowest_level_pooled",
        "$reads.numpy() != 0",
        "$reads.numpy() > 0.9",
        "avg_pool2d",
    ),
    M(
        "places_of_no_weight_unread",
        "'linear' in $a.$target or 'cubic' in $a.$target",
        "False",
        "upsample_bilinear2d",
    ),
)
