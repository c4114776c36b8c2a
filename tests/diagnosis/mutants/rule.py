"""Mutants of the helpers of the rules."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "rule",
    M(
        "dilated_windows",
        "'max_pool' in str($node.$target)",
        "False",
        program="windows_of_border_alone-causal",
    ),
    M(
        "zeros_on_a_diagonal",
        "'solve_triangular' in str($node.$target)",
        "False",
        "linalg_solve_triangular",
    ),
    M(
        "written_number_is_ordinary",
        "any((isinstance($v, int | float | complex) and (not abs($v) < $FLOAT16_LARGE) for $v in $numbers))",
        "False",
        "scatter.value",
        "index_fill.int_Scalar",
        quick=True,
    ),
)
