"""Mutants of the rules for reductions of masked lines."""

from __future__ import annotations

from tests.prover.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "maximum",
    M(
        "line_masked_in_part",
        "np.where($mask_like($fact.$known, $dtype), $value, np.inf).max(axis=$dims, keepdims=True)",
        "np.where($mask_like($fact.$known, $dtype), $value, np.inf).min(axis=$dims, keepdims=True)",
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
        "$rows.$alive & $usual & ~$large",
        "$rows.$alive & $usual",
        "amax",
        program="mask_by_amax-causal",
    ),
    M(
        "ordinary_though_low",
        "$rows.$alive & $usual & ~$large",
        "$rows.$alive & ~$large",
        program="mask_by_amax_of_low_entries-causal",
    ),
    M(
        "ordinary_though_unsure",
        "$rows.$alive & $usual & ~$large",
        "$usual & ~$large",
        "max.dim",
        "logsumexp",
    ),
)
