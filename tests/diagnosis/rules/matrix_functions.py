"""Samples and mutants of the rules for linear algebra."""

from __future__ import annotations

import torch

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.diagnosis.sampling.operands import In, S, X

SAMPLES = [
    S("linalg_qr", (X(3, 2, 2),), bounded=False),
    S("linalg_qr", (X(2, 3),), bounded=False),
    S("_linalg_svd", (X(3, 2, 2),), reads=(1,), bounded=False),
    S("_linalg_svd", (X(3, 3), False, False), reads=(1,), bounded=False),
    S("_linalg_eigh", (X(3, 2, 2),), bounded=False),
    S("linalg_cholesky_ex", (X(3, 2, 2),), bounded=False),
    S("linalg_inv_ex", (X(3, 2, 2),), bounded=False),
    S("_linalg_slogdet", (X(3, 2, 2),), bounded=False),
    S("_linalg_det", (X(2, 3, 3),), bounded=False),
    S("linalg_matrix_exp", (X(3, 2, 2),), bounded=False),
    S("linalg_lu_factor_ex", (X(3, 2, 2),), bounded=False),
    S("_linalg_solve_ex", (X(3, 2, 2), X(3, 2, 3)), bounded=False),
    S("_linalg_solve_ex", (X(2, 2), X(3, 2, 2)), bounded=False),
    S("_linalg_solve_ex", (X(3, 2, 2), X(3, 2)), bounded=False),
    S("_linalg_solve_ex", (X(3, 3), X(3)), bounded=False),
    S("_linalg_solve_ex", (X(2, 2), X(3, 2)), {"left": False}, bounded=False),
    S("cholesky_solve", (X(3, 2, 2), X(3, 2, 2)), bounded=False),
    S("_cdist_forward", (X(3, 2), X(3, 2), 2.0, None)),
    S("_cdist_forward", (X(3, 1, 2), X(3, 2, 2), 1.0, None)),
    S("_cdist_forward", (X(2, 3), X(2, 3), float("inf"), 2)),
    S("bucketize.Tensor", (X(3, 2), X(3))),
    S("bucketize.Tensor", (X(2, 3), X(2)), {"right": True}),
    S("bucketize.Scalar", (0.3, X(3))),
    S("searchsorted.Tensor", (X(3, 2), X(3, 3))),
    S("searchsorted.Tensor", (X(3), X(3, 3)), {"out_int32": True}),
    S(
        "searchsorted.Tensor",
        (X(3, 2), X(3, 3)),
        {"sorter": In((3, 2), "index", 2, dtype=torch.int64)},
    ),
    S("searchsorted.Scalar", (X(3), 0.3)),
]
MUTANTS = mutants_of(
    "matrix_functions",
    M(
        "rows_and_columns_that_move",
        "{*$by_position, *$outer}",
        "{*$outer}",
        "linalg_qr",
        "linalg_inv_ex",
        quick=True,
    ),
    M(
        "right_hand_sides_read_as_matrices",
        "len($right) == 1 or $right == $matrix[:-1]",
        "len($right) == 1",
        "_linalg_solve_ex",
    ),
    M(
        "boundaries_that_move",
        "{'edge'}",
        "set()",
        "bucketize.Tensor",
        "searchsorted.Tensor",
        quick=True,
    ),
    M(
        "boundaries_of_one_row",
        "[*$labels[:-1], 'edge'] if len($shape_of($edges)) > 1 else ['edge']",
        "['edge'] * len($shape_of($edges))",
        "searchsorted.Tensor",
    ),
    M(
        "first_rows_for_second_rows",
        "(*$leading, 'first', 'second')",
        "(*$leading, 'second', 'first')",
        "_cdist_forward",
    ),
)
