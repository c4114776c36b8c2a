"""Each simplification of a term or a formula keeps its value: all small cases are tried."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import z3

from orderproof.logic.rewriting import Substitution, evaluate, with_function_true, with_function_zero
from orderproof.logic.solver import Solver
from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Term,
    Variable,
    apply,
    as_term,
    at_most,
    conditional,
    conjunction,
    disjunction,
    divided,
    equal,
    floor_division,
    holds,
    implication,
    less,
    maximum,
    minimum,
    negation,
    variable,
)

A, B, C = (variable(name) for name in "abc")
SMALL = range(-4, 5)


def _value(expression: object, a: int, b: int = 0) -> int | bool:
    return evaluate(expression, {"a": a, "b": b}, {"f": lambda x: x * x, "p": lambda x: x > 1, "q": lambda x: x < 0})


@pytest.mark.parametrize("factor", [-3, -1, 2, 3])
def test_comparisons_of_multiples_are_those_of_integers(factor: int) -> None:
    for constant, a in itertools.product(SMALL, SMALL):
        term = A * factor + constant
        assert _value(at_most(term, 0), a) == (factor * a + constant <= 0)
        assert _value(less(term, 0), a) == (factor * a + constant < 0)
        assert _value(equal(term, 0), a) == (factor * a + constant == 0)
        assert _value(negation(at_most(term, 0)), a) == (factor * a + constant > 0)


@pytest.mark.parametrize("divisor", [2, 3])
def test_a_quotient_is_rounded_down(divisor: int) -> None:
    for factor, constant, a in itertools.product(SMALL, SMALL, SMALL):
        assert _value(floor_division(A * factor + constant, divisor), a) == (factor * a + constant) // divisor


def test_formulas_are_joined_as_their_truth_values_are() -> None:
    parts = [TRUE, FALSE, at_most(A, 0), less(0, A), at_most(B, 0), conjunction(at_most(A, 0), at_most(B, 0))]
    for first, second, a, b in itertools.product(parts, parts, (0, 1), (0, 1)):
        x, y = _value(first, a, b), _value(second, a, b)
        assert _value(conjunction(first, second), a, b) == (x and y)
        assert _value(disjunction(first, second), a, b) == (x or y)
        assert _value(implication(first, second), a, b) == (not x or y)
        assert _value(negation(disjunction(first, second)), a, b) == (not (x or y))


def test_a_term_is_divided_only_if_every_part_of_it_is() -> None:
    assert divided(A * 2 + 4, 2) is A + 2
    assert divided(A * 2 + 3, 2) is None
    assert divided(A * 3 + 4, 2) is None


REPLACED: list[tuple[Callable[[Term], object], Callable[[int], int]]] = [
    (lambda a: a * 3 + 1, lambda a: a * 3 + 1),
    (lambda a: (a * 3).times(a * 2 + 1), lambda a: 3 * a * (2 * a + 1)),
    (lambda a: minimum(a, as_term(1)) - maximum(a * 2, as_term(-1)), lambda a: min(a, 1) - max(2 * a, -1)),
    (lambda a: apply("f", a + 1), lambda a: (a + 1) ** 2),
    (lambda a: floor_division(a, 2), lambda a: a // 2),
    (lambda a: conditional(less(a, 1), B, B + 5), lambda a: 0 if a < 1 else 5),
]


@pytest.mark.parametrize(("expression", "expected"), REPLACED)
def test_a_replaced_variable_has_the_value_of_its_term(
    expression: Callable[[Term], Term], expected: Callable[[int], int]
) -> None:
    (own,) = A.variables
    assert isinstance(own, Variable)
    replaced = Substitution({own: B + 2}).term(expression(A))
    for b in SMALL:
        wanted = expected(b + 2) + (b if expression is REPLACED[-1][0] else 0)
        assert evaluate(replaced, {"b": b}, {"f": lambda x: x * x}) == wanted


def test_only_the_named_function_is_made_true_or_zero() -> None:
    assert with_function_true(holds("p", A) & holds("q", A), "p") is holds("q", A)
    assert with_function_zero(equal(apply("f", A) + apply("g", A), 0), "f") is equal(apply("g", A), 0)


@pytest.mark.parametrize("divisor", [2, 5])
def test_the_solver_rounds_down(divisor: int) -> None:
    quotient = floor_division(A, divisor)
    assert Solver().implies([], at_most(quotient * divisor, A))
    assert Solver().implies([], less(A, (quotient + 1) * divisor))
    assert not Solver().implies([], less(quotient * divisor, A))


def test_the_solver_needs_the_premises() -> None:
    assert Solver().implies([at_most(A, 3)], at_most(A, 4))
    assert not Solver().implies([at_most(A, 5)], at_most(A, 4))
    assert not Solver().implies([TRUE], at_most(A, 4))


def test_the_greatest_bound_of_a_product_is_the_factor() -> None:
    product = A.times(B)
    assert Solver().implies([at_most(1, A), at_most(1, B)], at_most(A, product))
    assert not Solver().implies([at_most(1, A), at_most(1, B)], less(A, product))
    assert not Solver().implies([at_most(1, A)], at_most(A, product))


def test_a_counterexample_refutes_only_what_has_its_products() -> None:
    """One to the first premise says nothing of a * b, which is 0 in it where nothing bounds the product."""
    positive = conjunction(at_most(1, A), at_most(1, B))
    first, second = positive & equal(C, 0), positive & equal(A.times(B), C)
    assert list(Solver().sufficient([(first, []), (second, [])], at_most(1, C))) == [second]


def test_what_z3_does_not_know_is_not_implied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(z3.Solver, "check", lambda _: z3.unknown)
    assert not Solver().implies([at_most(A, 3)], at_most(A, 4))
