"""Mutants of the rules for pooling and resampling."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "pooling",
    M(
        "pooled_by_place",
        "any(($is_moved($m) for $m in $fact.$moves[$lead:]))",
        "False",
        "avg_pool2d",
    ),
    M(
        "some_windows_for_one",
        "set($call.shape[$lead:]) == {1}",
        "1 in $call.shape[$lead:] or True",
        "adaptive_avg_pool1d",
    ),
    M(
        "first_element_of_the_mean",
        "$fact.dependence.max(axis=tuple(range($lead, $fact.dependence.ndim)), keepdims=True)",
        "$fact.dependence.min(axis=tuple(range($lead, $fact.dependence.ndim)), keepdims=True)",
        "adaptive_avg_pool1d",
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
