"""Mutants of the rules for reductions of masked lines."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "maximum",
    M(
        "line_masked_in_part",
        "$end.astype(np.float64).max(axis=$dims, keepdims=$keep)",
        "$end.astype(np.float64).min(axis=$dims, keepdims=$keep)",
        "amax",
        "logsumexp",
    ),
    M(
        "masked_in_the_first_run_alone",
        "$both_ends($rows.$gone, $fact.$moves, $fact.$shape)",
        "$rows.$gone",
        program="causal_maximum-permutation",
        quick=True,
    ),
    M(
        "visible_in_another_line",
        "$lines_of($fact.$known, $dtype_of($a.$args[0]), $dims)",
        "$lines_of($fact.$known, $dtype_of($a.$args[0]), None)",
        "amax",
        "max.dim",
    ),
    M(
        "ordinary_beside_a_large_one",
        "$rounded($low, $high + $excess, $_dtype)",
        "$rounded($low, np.minimum($high, 0) + $excess, $_dtype)",
        "amax",
        program="mask_by_amax-causal",
    ),
    M(
        "ordinary_though_low",
        "$rounded($low, $high + $excess, $_dtype)",
        "$rounded(np.maximum($low, 0), $high + $excess, $_dtype)",
        program="mask_by_amax_of_low_entries-causal",
    ),
    M(
        "ordinary_though_unsure",
        "$rounded($low, $high + $excess, $_dtype)",
        "$rounded(np.maximum($low, 0), np.nan_to_num($high) + $excess, $_dtype)",
        "max.dim",
        "logsumexp",
    ),
)
