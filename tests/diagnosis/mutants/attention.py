"""Mutants of the rule for scaled dot product attention."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

SDPA = "scaled_dot_product_attention"
MUTANTS = mutants_of(
    "attention",
    M(
        "unsure_score_is_not_high",
        "$select($mask, $scores, $add($scores, $absent, $dtype), $dtype)",
        "$select($mask, $scores, $absent, $dtype)",
        SDPA,
    ),
    M(
        "low_mask_added",
        "$masked = $add($scores, $mask, $dtype)",
        "$masked = $scores",
        SDPA,
        program="mask_hidden_by_data",
    ),
    M(
        "mask_upside_down",
        "$select($mask, $scores, $add($scores, $absent, $dtype), $dtype)",
        "$select($mask, $add($scores, $absent, $dtype), $scores, $dtype)",
        SDPA,
        quick=True,
    ),
    M(
        "upper_triangle",
        "np.tril(np.ones($_shape, dtype=bool))",
        "np.triu(np.ones($_shape, dtype=bool))",
        SDPA,
    ),
    M(
        "mask_that_depends",
        "$dependence = $join([$of_scores, $of_mask])",
        "$dependence = $join([$of_scores])",
        SDPA,
    ),
    M(
        "heads_in_another_order",
        "np.repeat(np.arange($own), $heads // $own)",
        "np.tile(np.arange($own), $heads // $own)",
        SDPA,
    ),
    M(
        "softmax_along_the_queries",
        "$softmax_along($a, $scores, $rank - 1, $dtype, $safe=True)",
        "$softmax_along($a, $scores, $rank - 2, $dtype, $safe=True)",
        SDPA,
        program="one_value_that_is_not_zero",
    ),
    M(
        "mask_that_is_not_known",
        "$masked = $select($mask, $scores, $_hidden, $dtype)",
        "$masked = $scores",
        program="mask_of_data_on_known_scores",
    ),
)
