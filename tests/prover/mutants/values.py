"""Mutants of value ranges."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

SDPA = "scaled_dot_product_attention"
BRANCHES = ("masked_fill.Scalar", "where.self", "where.ScalarOther", "where.ScalarSelf")
MUTANTS = mutants_of(
    "values",
    M(
        "large_is_no_mask",
        "$known.$open_below.any() or np.any($huge)",
        "$known.$open_below.any()",
        "matmul",
        "linear",
        "relu",
        "cumsum",
    ),
    M(
        "masked_is_no_mask",
        "$known.$open_below.any() or np.any($huge)",
        "np.any($huge)",
        "matmul",
        "linear",
        "sum",
    ),
    M(
        "known_value_is_not_high",
        "$known.$exact & ($known.$value < $FLOAT16_LARGE)",
        "$known.$exact",
        *BRANCHES,
    ),
    M(
        "unsure_is_not_high",
        "$known.$ordinary | $known.$masking | $known.$at_most_ordinary",
        "~$known.$exact",
        *BRANCHES,
    ),
    M(
        "almost_a_mask_is_ordinary",
        "np.abs($value) < $limit",
        "np.abs($value) < 1e8",
        program="almost_a_mask_filled_in_where_data_say",
    ),
    M(
        "low_is_alive",
        "$ordinary = $known.$ordinary | $_usual",
        "$ordinary = $known.$ordinary | $known.$at_most_ordinary | $_usual",
        "softmax.int",
        "_softmax",
    ),
    M(
        "line_wholly_masked",
        "$masked & $alive",
        "$masked",
        "softmax.int",
        SDPA,
        quick=True,
    ),
    M(
        "infinity_beside_masked",
        "$ordinary.any(axis=$dims, keepdims=True) & ~$spoilt",
        "$ordinary.any(axis=$dims, keepdims=True)",
        "softmax.int",
        "_softmax",
    ),
    M(
        "mask_beside_a_mask_as_large",
        "$mask_like($known, $dtype, $share=$MARGIN)",
        "$mask_like($known, $dtype)",
        program="mask_beside_entries_nearly_as_large",
    ),
)
