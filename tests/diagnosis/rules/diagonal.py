"""Samples and mutants of the rule for diagonals."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.diagnosis.sampling.operands import S, X

SAMPLES = [
    S("diagonal", (X(3, 3),)),
    S("diagonal", (X(2, 3, 3), 0, -2, -1)),
    S("diagonal", (X(3, 2, 3), 0, 2, 0)),
    S("diagonal", (X(3, 3), 1)),
    S("diagonal", (X(3, 3, 2), -1)),
    S("diagonal", (X(3, 1, 3), 0, 0, 2)),
    S("diagonal", (X(3, 3, kind="mask", buffer=True),)),
]
MUTANTS = mutants_of(
    "diagonal",
    M(
        "offset_ignored",
        "np.diagonal($full, $offset, $first, $second)",
        "np.diagonal($full, 0, $first, $second)",
        "diagonal",
    ),
    M(
        "next_to_the_main_one",
        "$offset == 0 and $fact.shape[$first] == $fact.shape[$second]",
        "$fact.shape[$first] == $fact.shape[$second]",
        "diagonal",
    ),
    M("one_that_moves", "all($m is $along for $m in $moving)", "True", "diagonal", quick=True),
)
