"""Mutants of the rules for softmax and normalisation."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

SDPA = "scaled_dot_product_attention"
MUTANTS = mutants_of(
    "softmax",
    M(
        "logarithm_of_low",
        "$logarithm and $may_mask($known)",
        "$logarithm and ($known.$high < -1).any()",
        program="logarithm_of_a_softmax_of_what_data_hide",
    ),
    M(
        "line_of_low_is_a_number",
        "np.isfinite($known.$low)",
        "($known.$low < np.inf)",
        "softmax.int",
        "_softmax",
    ),
    M(
        "line_of_unsure_is_a_number",
        "(np.isfinite($known.$low).any(axis=$dim, keepdims=True) | $safe) & ~$rows.$spoilt",
        "np.isfinite($known.$low).any(axis=$dim, keepdims=True) | $safe",
        "softmax.int",
        "_safe_softmax",
    ),
    M(
        "every_softmax_is_safe",
        "(np.isfinite($known.$low).any(axis=$dim, keepdims=True) | $safe) & ~$rows.$spoilt",
        "~$rows.$spoilt",
        "softmax.int",
        "_softmax",
    ),
    M(
        "spoilt_line_drops_infinity",
        "$known.$exactly(-np.inf) & ~$rows.$spoilt",
        "$known.$exactly(-np.inf)",
        program="infinity_in_a_safe_line",
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
        "np.where($number, -1.0, -np.inf)",
        "np.where($number, -1.0, -1.0)",
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
