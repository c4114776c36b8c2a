"""Mutants of the rule for reductions."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "reduction",
    M(
        "lowest_level_reduced",
        "$fact.$dependence.max(axis=$dims, keepdims=$keep)",
        "$fact.$dependence.min(axis=$dims, keepdims=$keep)",
        "sum.dim_IntList",
        "amax",
        quick=True,
    ),
    M(
        "index_of_a_moved_maximum",
        "not ($both and $only_value_used($a))",
        "False",
        "argmax",
        "max.dim",
    ),
    M(
        "unread_index",
        "$index = $Fact($result.$shape, $result.$moves, np.full($_sizes, $ALWAYS, dtype=np.int64))",
        "pass",
        "max.dim",
        "min.dim",
        "median.dim",
    ),
    M(
        "sum_with_one_zero",
        "$zero.all(axis=$dims, keepdims=$keep)",
        "$zero.any(axis=$dims, keepdims=$keep)",
        "sum.dim_IntList",
        "mean.dim",
        "nansum",
    ),
)
