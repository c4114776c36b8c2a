"""Mutants of the rules for sums of products."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.contraction.products",
        M(
            "one_factor_agrees",
            "conjunction(*(fact.same for fact in placed)) | zero",
            "disjunction(*(fact.same for fact in placed)) | zero",
            program="product of all tokens",
            quick=True,
        ),
        M("bias_that_differs", "a.same & b.same", "a.same", program="added by a product", quick=True),
        M("large_scale_of_a_product", "large is FALSE", "True", program="baddbmm with a large number", quick=True),
        M(
            "bias_that_moves",
            "call.broadcast([result, call.fact(found.added)])",
            "result",
            program="moved: added to a product",
            quick=True,
        ),
    ),
]
