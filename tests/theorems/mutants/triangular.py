"""Mutants of the rules for triangles."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = [
    *mutants_of(
        "theorems.operators.triangular.triangle",
        M(
            "offset_the_other_way",
            "at_most(column[0], row[0] + offset)",
            "at_most(column[0] + offset, row[0])",
            program="decays in chunks with the next token",
            quick=True,
        ),
        M(
            "upper_as_lower",
            "at_most(row[0] + offset, column[0])",
            "at_most(column[0], row[0] + offset)",
            program="rows that are corrected one after another",
            quick=True,
        ),
        M(
            "triangle_of_tokens",
            "MovedFact((*dims[:-2], still(dims[-2], what), still(dims[-1], what)))",
            "MovedFact(dims)",
            program="moved: upper triangle of products",
            quick=True,
        ),
    ),
    *mutants_of(
        "theorems.operators.triangular.triangular_solve",
        M("other_order_of_rows", "upper != left", "upper == left", program="triangular systems", quick=True),
        M(
            "right_side_unread",
            "implication(read, a.same) & implication(before, b.same)",
            "implication(read, a.same)",
            program="right side of all tokens",
            quick=True,
        ),
        M(
            "system_unread",
            "implication(read, a.same) & implication(before, b.same)",
            "implication(before, b.same)",
            program="system of later tokens",
            quick=True,
        ),
        M(
            "diagonal_of_zeros",
            "unbounded = TRUE",
            "unbounded = FALSE",
            program="divided by a small diagonal",
            quick=True,
        ),
    ),
]
