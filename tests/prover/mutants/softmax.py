"""Mutants of the rules for softmax and normalisation."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

SDPA = "scaled_dot_product_attention"
MUTANTS = mutants_of(
    "softmax",
    M(
        "logarithm_of_low",
        "$logarithm and $may_mask($known)",
        "$logarithm and $known.$masking.any()",
        program="logarithm_of_a_softmax_of_what_data_hide",
    ),
    M(
        "line_of_low_is_a_number",
        "~$known.$unbounded & ~$known.$at_most_ordinary",
        "~$known.$unbounded",
        "softmax.int",
        "_softmax",
    ),
    M(
        "line_of_unsure_is_a_number",
        "($sure.any(axis=$dim, keepdims=True) | $safe) & ~$rows.$spoilt",
        "$sure.any(axis=$dim, keepdims=True) | $safe",
        "softmax.int",
        "_safe_softmax",
    ),
    M(
        "every_softmax_is_safe",
        "($sure.any(axis=$dim, keepdims=True) | $safe) & ~$rows.$spoilt",
        "~$rows.$spoilt",
        "softmax.int",
        "_softmax",
    ),
    M(
        "every_softmax_drops_infinity",
        "$absent & ~$rows.$spoilt & $safe",
        "$absent & ~$rows.$spoilt",
        "softmax.int",
        "_softmax",
    ),
    M(
        "spoilt_line_drops_infinity",
        "$absent & ~$rows.$spoilt",
        "$absent",
        program="infinity_in_a_safe_line",
    ),
    M(
        "overflown_is_a_number",
        "~$known.$unbounded & ~$known.$at_most_ordinary & $rows.$finite & ~$overflown",
        "~$known.$unbounded & ~$known.$at_most_ordinary & $rows.$finite",
        program="mask_twice_over",
    ),
    M(
        "masked_in_the_first_run",
        "$both_ends($gone, $fact.$moves, $fact.$shape)",
        "$gone",
        "softmax.int",
        SDPA,
        "add.Tensor",
    ),
    M(
        "own_level_behind_a_mask",
        "np.where($dropped, $NEVER, $dependence).max(axis=$dim, keepdims=True)",
        "np.where($dropped, $NEVER, $dependence)",
        "softmax.int",
        "_softmax",
    ),
    M(
        "own_level_of_a_softmax",
        "return $Fact($fact.$shape, $fact.$moves, $fact.$dependence.max(axis=$dim, keepdims=True))",
        "return $fact",
        "softmax.int",
        quick=True,
    ),
    M(
        "line_that_is_no_number",
        "$ill = np.where($number, $RangeKind.$ORDINARY, $RangeKind.$UNBOUNDED).astype(np.uint8)",
        "$ill = np.where($number, $RangeKind.$ORDINARY, $RangeKind.$ORDINARY).astype(np.uint8)",
        "softmax.int",
    ),
    M(
        "logarithm_of_zero",
        "$logarithm and $may_mask($known)",
        "False",
        "log_softmax.int",
        "_log_softmax",
    ),
)
