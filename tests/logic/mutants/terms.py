"""Mutants of logic/terms.py."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "logic.terms",
    M(
        "comparison_rounded_up",
        "rest + -((-term.constant) // divisor)",
        "rest + term.constant // divisor",
        program="tests.logic.test_simplification:test_comparisons_of_multiples_are_those_of_integers",
        quick=True,
    ),
    M(
        "negation_keeps_the_bound",
        "at_most(-term + 1, 0)",
        "at_most(-term, 0)",
        program="tests.logic.test_simplification:test_comparisons_of_multiples_are_those_of_integers",
        quick=True,
    ),
    M(
        "less_or_equal",
        "at_most(as_term(first) + 1, second)",
        "at_most(as_term(first), second)",
        program="tests.logic.test_simplification:test_comparisons_of_multiples_are_those_of_integers",
        quick=True,
    ),
    M(
        "negated_conjunction_of_all",
        "disjunction(*map(negation, operands))",
        "conjunction(*map(negation, operands))",
        program="tests.logic.test_simplification:test_formulas_are_joined_as_their_truth_values_are",
        quick=True,
    ),
    M(
        "remainder_of_a_constant_dropped",
        "_intern(FloorDivision, _term(rest, inside), divisor)",
        "_intern(FloorDivision, _term(0, inside), divisor)",
        program="tests.logic.test_simplification:test_a_quotient_is_rounded_down",
        quick=True,
    ),
    M(
        "smaller_is_larger",
        "conditional(at_most(first, second), first, second)",
        "conditional(at_most(first, second), second, first)",
        program="tests.logic.test_simplification:test_a_replaced_variable_has_the_value_of_its_term",
        quick=True,
    ),
    M(
        "factor_forgotten_in_a_product",
        "factor * other_factor",
        "factor",
        program="tests.logic.test_simplification:test_a_replaced_variable_has_the_value_of_its_term",
        quick=True,
    ),
    M(
        "one_of_two_operands",
        "len(operands) < 2",
        "len(operands) < 3",
        program="tests.logic.test_simplification:test_formulas_are_joined_as_their_truth_values_are",
        quick=True,
    ),
    M(
        "divided_in_part",
        "any(n % divisor for n in (term.constant, *(factor for _, factor in term.summands)))",
        "any(n % divisor for n in (term.constant,))",
        program="tests.logic.test_simplification:test_a_term_is_divided_only_if_every_part_of_it_is",
        quick=True,
    ),
    M(
        "implied_by_any",
        "disjunction(negation(premise), conclusion)",
        "disjunction(premise, conclusion)",
        program="tests.logic.test_simplification:test_formulas_are_joined_as_their_truth_values_are",
        quick=True,
    ),
)
