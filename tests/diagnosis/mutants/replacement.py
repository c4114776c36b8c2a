"""Mutants of the laws that replace part of the batch."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "replacement",
        M(
            "others_replaced",
            "np.where($slots, 0, $NEVER)",
            "np.where($slots, $NEVER, 0)",
            program="sum_of_the_pads-padding",
        ),
        M(
            "replaced_asked",
            "$slots[:, $token.$offset:$token.$offset + $tokens] = $asked",
            "$slots[:, $token.$offset:$token.$offset + $tokens] = ~$asked",
            program="pads_read_at_real_tokens-padding",
        ),
        M(
            "row_in_part_asked",
            "np.logical_and.reduce($asked, axis=1)",
            "np.logical_not(np.logical_or.reduce($asked, axis=1))",
            program="rows_exchanged-batch",
        ),
    ),
    *mutants_of(
        "batch",
        M(
            "middle_rows_forgotten",
            "*range(max($rows, 2) - 1)",
            "0",
            program="middle_row_of_three-batch",
        ),
    ),
]
