"""Mutants of logic/rewriting.py."""

from __future__ import annotations

from tests.diagnosis.mutants.engine import M, mutants_of

MUTANTS = mutants_of(
    "logic.rewriting",
    M(
        "coefficient_forgotten",
        "total = total + self._atom(atom) * factor",
        "total = total + self._atom(atom)",
        program="tests.logic.test_simplification:test_a_replaced_variable_has_the_value_of_its_term",
        quick=True,
    ),
    M(
        "condition_not_replaced",
        "conditional(self.formula(condition), self.term(first), self.term(second))",
        "conditional(condition, self.term(first), self.term(second))",
        program="tests.logic.test_simplification:test_a_replaced_variable_has_the_value_of_its_term",
        quick=True,
    ),
    M(
        "divisor_of_one",
        "floor_division(self.term(term), divisor)",
        "floor_division(self.term(term), divisor + 1)",
        program="tests.logic.test_simplification:test_a_replaced_variable_has_the_value_of_its_term",
        quick=True,
    ),
    M(
        "other_functions_made_true",
        "TRUE if isinstance(one, Holds) and one.name == name else one",
        "TRUE if isinstance(one, Holds) else one",
        program="tests.logic.test_simplification:test_only_the_named_function_is_made_true_or_zero",
        quick=True,
    ),
    M(
        "other_functions_made_zero",
        "not (isinstance(atom, Apply) and atom.name == name)",
        "not isinstance(atom, Apply)",
        program="tests.logic.test_simplification:test_only_the_named_function_is_made_true_or_zero",
        quick=True,
    ),
)
