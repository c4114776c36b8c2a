"""Samples and mutants of the rule for triangular systems."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.diagnosis.sampling.operands import S, X

SOLVE = "linalg_solve_triangular"
SAMPLES = [  # a random system is often close to singular: its solution is finite, but not of ordinary size
    S(SOLVE, (X(3, 3), X(3, 3)), {"upper": False}, bounded=False),
    S(SOLVE, (X(3, 3), X(3, 2)), {"upper": True}, bounded=False),
    S(SOLVE, (X(3, 3), X(2, 3)), {"upper": False, "left": False}, bounded=False),
    S(SOLVE, (X(3, 3), X(3, 3)), {"upper": True, "left": False}, bounded=False),
    S(SOLVE, (X(3, 3), X(3, 1)), {"upper": False, "unitriangular": True}, bounded=False),
    S(SOLVE, (X(2, 4, 4), X(2, 4, 2)), {"upper": True, "unitriangular": True}, bounded=False),
    S(SOLVE, (X(3, 2, 2), X(3, 2, 3)), {"upper": False}, bounded=False),
    S(SOLVE, (X(2, 2), X(3, 2, 2)), {"upper": True, "left": False, "unitriangular": True}, bounded=False),
    S(SOLVE, (X(3, 1, 1), X(2, 1, 1, 3)), {"upper": False}, bounded=False),
]
MUTANTS = mutants_of(
    "triangular",
    M(
        "other_order_of_rows",
        "$upper != $left",
        "$upper == $left",
        SOLVE,
        quick=True,
    ),
    M(
        "system_on_the_other_side",
        "$upper != $left",
        "$upper is False",
        SOLVE,
    ),
    M(
        "unit_diagonal_in_every_system",
        "-1 if $unitriangular else 0",
        "-1",
        SOLVE,
    ),
    M(
        "coefficients_of_no_earlier_row",
        "np.maximum($of_row, $_values)",
        "$_values",
        SOLVE,
    ),
    M(
        "row_without_earlier_rows",
        "np.maximum.accumulate($own[..., $order, :], axis=-2)[..., $order, :]",
        "$own",
        SOLVE,
    ),
    M(
        "rows_that_move",
        "$x in BY_POSITION and $is_permuted($m)",
        "False",
        SOLVE,
        quick=True,
    ),
    M(
        "solution_of_a_transposed_system",
        "$dependence if $left else $dependence.swapaxes(-1, -2)",
        "$dependence",
        SOLVE,
    ),
)
