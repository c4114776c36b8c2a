"""Mutants of the rule for scaled dot product attention."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

SDPA = "scaled_dot_product_attention"
MUTANTS = mutants_of(
    "attention",
    M(
        "unsure_score_is_not_high",
        """
            $high = $scores.$unbounded
            if $scores.$exact.any():
                $high = $_high
        """,
        """
            $high = $scores.$unbounded & False
            if $scores.$exact.any():
                $high = $_high
        """,
        SDPA,
    ),
    M(
        "low_mask_added",
        """
            $low = $scores.$at_most_ordinary | $mask.$at_most_ordinary
            $status = np.where($low & $_plain, $RangeKind.$AT_MOST_ORDINARY, $status)
        """,
        """
            $low = $scores.$at_most_ordinary
            $status = np.where($low & $_plain, $RangeKind.$AT_MOST_ORDINARY, $status)
        """,
        program="mask_hidden_by_data",
    ),
    M(
        "large_mask_beside_low",
        "($status == $RangeKind.$ORDINARY) | ($status == $RangeKind.$AT_MOST_ORDINARY)",
        "$status == $RangeKind.$AT_MOST_ORDINARY",
        SDPA,
    ),
    M(
        "mask_upside_down",
        "$hidden, $visible = ($mask.$exact & ($mask.$value == 0), $_visible)",
        "$visible, $hidden = ($mask.$exact & ($mask.$value == 0), $_visible)",
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
        "np.where($visible, $scores.$status, $RangeKind.$AT_MOST_ORDINARY)",
        "$scores.$status",
        program="mask_of_data_on_known_scores",
    ),
    M(
        "infinite_mask_is_ordinary",
        "np.where($large & $low, $RangeKind.$UNBOUNDED, $status)",
        "$status",
        SDPA,
    ),
)
