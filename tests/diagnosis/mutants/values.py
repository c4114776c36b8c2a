"""Mutants of value ranges."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

SDPA = "scaled_dot_product_attention"
BRANCHES = ("masked_fill.Scalar", "where.self", "where.ScalarOther", "where.ScalarSelf")
MUTANTS = mutants_of(
    "values",
    M(
        "large_is_no_mask",
        "not $known.$within($LIMIT).all()",
        "not ($known.$low > -$LIMIT).all()",
        "matmul",
        "linear",
        "relu",
        "cumsum",
    ),
    M(
        "masked_is_no_mask",
        "not $known.$within($LIMIT).all()",
        "not ($known.$high < $LIMIT).all()",
        "matmul",
        "linear",
        "sum",
    ),
    M(
        "low_is_ordinary",
        "($low > -$limit) & ($high < $limit)",
        "$high < $limit",
        "add.Tensor",
        "sub.Tensor",
        *BRANCHES,
    ),
    M(
        "large_is_ordinary",
        "($low > -$limit) & ($high < $limit)",
        "$low > -$limit",
        "add.Tensor",
        "mul.Tensor",
        "maximum",
    ),
    M(
        "almost_a_mask_is_ordinary",
        "$limit = $ordinary_limit($dtype)",
        "$limit = 1e8",
        program="almost_a_mask_filled_in_where_data_say",
    ),
    M(
        "whole_numbers_are_small",
        "$dtype is torch.bool or $ordinary.all()",
        "not $dtype.is_floating_point or $ordinary.all()",
        program="mask_of_whole_numbers_by_multiplication",
    ),
    M(
        "overflown_is_finite",
        "$low < $info.min * (1 + $info.eps / 4) - $LIMIT",
        "$low < -np.inf",
        program="mask_twice_over",
    ),
    M(
        "no_number_has_an_end",
        "$anything = np.isnan($low) | $_large",
        "$anything = np.isnan($low) & $_large",
        "mul.Tensor",
        "add.Tensor",
        *BRANCHES,
    ),
    M(
        "low_is_alive",
        "$known.$low > -$MARGIN * $threshold($dtype)",
        "$known.$high > -$MARGIN * $threshold($dtype)",
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
        "np.any($visible, axis=$dims, keepdims=True) & ~$spoilt",
        "np.any($visible, axis=$dims, keepdims=True)",
        "softmax.int",
        "_softmax",
    ),
    M(
        "mask_beside_a_mask_as_large",
        "-$MARGIN * $threshold($dtype)",
        "-$threshold($dtype)",
        program="mask_beside_entries_nearly_as_large",
    ),
)
