"""Mutants of the rule for clamps."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "clamp",
    M(
        "bound_of_a_clamp_is_ordinary",
        "$made.$known is None or not ($low < $FLOAT16_LARGE and $high > -$FLOAT16_LARGE)",
        "$made.$known is None",
        "clamp",
        "clamp_max",
        "hardtanh",
        quick=True,
    ),
    M(
        "masked_entry_clamped",
        "np.full((1,) * len($made.$shape), True) if $known is None else $known.$ordinary",
        "np.full((1,) * len($made.$shape), True)",
        "clamp",
    ),
)
