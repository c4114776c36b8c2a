"""Mutants of the rules for attention."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.attention.fused_attention",
        M(
            "diagonal_hidden_too",
            "~at_most($_column, $_row)",
            "~at_most($_column + 1, $_row)",
            program="fused heads",
            quick=True,
        ),
        M(
            "one_later_token_seen",
            "~at_most($_column, $_row)",
            "~at_most($_column, $_row + 1)",
            program="fused heads",
            quick=True,
        ),
        M(
            "mask_of_booleans_the_wrong_way",
            "hidden = ~b.value",
            "hidden = b.value",
            program="mask of booleans in one operator",
            quick=True,
        ),
        M(
            "weights_under_a_mask_that_differs",
            "call.context.for_all((a.same & b.same) | b.zero, a.sizes, first)",
            "call.context.for_all(a.same | b.zero, a.sizes, first)",
            program="keys selected of all, then hidden",
            quick=True,
        ),
        M(
            "causal_flag_does_not_count",
            'call.argument(5, "is_causal", False) and not call.without_order',
            "False",
            program="moved: fused and causal",
            quick=True,
        ),
    ),
]
