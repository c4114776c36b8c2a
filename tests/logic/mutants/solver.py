"""Mutants of logic/solver.py."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "logic.solver",
    M(
        "unknown_counts_as_proved",
        "bool(answer == z3.unsat)",
        "bool(answer != z3.sat)",
        program="tests.logic.test_simplification:test_what_z3_does_not_know_is_not_implied",
        quick=True,
    ),
    M(
        "conclusion_not_negated",
        "conjunction(premise, negation(conclusion))",
        "conjunction(premise, conclusion)",
        program="tests.logic.test_simplification:test_the_solver_needs_the_premises",
        quick=True,
    ),
    M(
        "premise_forgotten",
        "conclusion is TRUE or conclusion in operands or premise is FALSE",
        "conclusion is TRUE or True",
        program="tests.logic.test_simplification:test_the_solver_needs_the_premises",
        quick=True,
    ),
    M(
        "remainder_rounded_up",
        "_made(z3.Z3_mk_div, to(term), _number(divisor))",
        "_made(z3.Z3_mk_div, to(term + 1), _number(divisor))",
        program="tests.logic.test_simplification:test_the_solver_rounds_down",
        quick=True,
    ),
    M(
        "products_without_their_size",
        "at_most(one, size)",
        "at_most(one + 1, size)",
        program="tests.logic.test_simplification:test_the_greatest_bound_of_a_product_is_the_factor",
        quick=True,
    ),
    M(
        "counterexample_without_its_products",
        "known.products.issuperset(premise.products)",
        "True",
        program="tests.logic.test_simplification:test_a_counterexample_refutes_only_what_has_its_products",
        quick=True,
    ),
)
