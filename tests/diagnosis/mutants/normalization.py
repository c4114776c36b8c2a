"""Mutants of the rules for normalization."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "normalization",
    M(
        "groups_by_place",
        "$is_moved($fact.$moves[1]) and $groups > 1",
        "False",
        "group_norm",
    ),
    M(
        "own_level_of_a_normalisation",
        "$inner = $Fact($fact.$shape, $fact.$moves, $fact.$dependence.max(axis=$dims, keepdims=True))",
        "$inner = $fact",
        "layer_norm",
        "rms_norm",
        quick=True,
    ),
    M(
        "moments_that_move",
        "tuple(($STILL if $d in $dims else $m for $d, $m in enumerate($result.$moves)))",
        "$result.$moves",
        "native_layer_norm",
        "_fused_rms_norm",
    ),
)
