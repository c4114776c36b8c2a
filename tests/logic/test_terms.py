"""Terms and formulas keep their value when they are simplified, negated and substituted; Z3 agrees with evaluation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orderproof.logic.rewriting import Substitution, evaluate, with_function_true
from orderproof.logic.solver import Solver
from orderproof.logic.terms import (
    FALSE,
    TRUE,
    Formula,
    Term,
    apply,
    as_term,
    at_most,
    conditional,
    conjunction,
    constant_quotient,
    disjunction,
    divided,
    equal,
    floor_division,
    holds,
    less,
    maximum,
    minimum,
    negation,
    remainder,
    variable,
    without_common_factors,
)

NAMES = ("a", "b", "n")
VALUES = st.fixed_dictionaries({name: st.integers(-6, 6) for name in NAMES})
FUNCTIONS = {"f": lambda x: (x * x) % 5 - 2, "p": lambda x, y: (x + 2 * y) % 3 == 0}


def terms(depth: int = 3) -> st.SearchStrategy[tuple[Term, object]]:
    """A term with the same expression as a function of the values."""
    leaf = st.one_of(
        st.integers(-4, 4).map(lambda k: (as_term(k), lambda v: k)),
        st.sampled_from(NAMES).map(lambda n: (variable(n), lambda v: v[n])),
    )
    if depth == 0:
        return leaf
    inner, condition = terms(depth - 1), formulas(depth - 1)
    return st.one_of(
        leaf,
        st.tuples(inner, inner).map(lambda p: (p[0][0] + p[1][0], lambda v: p[0][1](v) + p[1][1](v))),
        st.tuples(inner, inner).map(lambda p: (p[0][0] - p[1][0], lambda v: p[0][1](v) - p[1][1](v))),
        st.tuples(inner, inner).map(lambda p: (p[0][0].times(p[1][0]), lambda v: p[0][1](v) * p[1][1](v))),
        st.tuples(inner, st.integers(1, 5)).map(
            lambda p: (floor_division(p[0][0], p[1]), lambda v: p[0][1](v) // p[1])
        ),
        st.tuples(inner, st.integers(1, 5)).map(lambda p: (remainder(p[0][0], p[1]), lambda v: p[0][1](v) % p[1])),
        inner.map(lambda t: (apply("f", t[0]), lambda v: FUNCTIONS["f"](t[1](v)))),
        st.tuples(condition, inner, inner).map(
            lambda p: (
                conditional(p[0][0], p[1][0], p[2][0]),
                lambda v: p[1][1](v) if p[0][1](v) else p[2][1](v),
            )
        ),
        st.tuples(inner, inner).map(lambda p: (maximum(p[0][0], p[1][0]), lambda v: max(p[0][1](v), p[1][1](v)))),
        st.tuples(inner, inner).map(lambda p: (minimum(p[0][0], p[1][0]), lambda v: min(p[0][1](v), p[1][1](v)))),
    )


def formulas(depth: int = 2) -> st.SearchStrategy[tuple[Formula, object]]:
    """A formula with the same expression as a function of the values."""
    pair = st.tuples(terms(max(depth - 1, 0)), terms(max(depth - 1, 0)))
    leaf = st.one_of(
        st.sampled_from([(TRUE, lambda v: True), (FALSE, lambda v: False)]),
        pair.map(lambda p: (at_most(p[0][0], p[1][0]), lambda v: p[0][1](v) <= p[1][1](v))),
        pair.map(lambda p: (less(p[0][0], p[1][0]), lambda v: p[0][1](v) < p[1][1](v))),
        pair.map(lambda p: (equal(p[0][0], p[1][0]), lambda v: p[0][1](v) == p[1][1](v))),
        pair.map(lambda p: (holds("p", p[0][0], p[1][0]), lambda v: FUNCTIONS["p"](p[0][1](v), p[1][1](v)))),
    )
    if depth == 0:
        return leaf
    inner = formulas(depth - 1)
    several = st.lists(inner, min_size=0, max_size=3)
    return st.one_of(
        leaf,
        inner.map(lambda f: (negation(f[0]), lambda v: not f[1](v))),
        several.map(lambda fs: (conjunction(*(f[0] for f in fs)), lambda v: all(f[1](v) for f in fs))),
        several.map(lambda fs: (disjunction(*(f[0] for f in fs)), lambda v: any(f[1](v) for f in fs))),
    )


@given(terms(), VALUES)
@settings(max_examples=300, deadline=None)
def test_a_term_has_the_value_of_the_expression_it_was_built_from(pair: object, values: dict[str, int]) -> None:
    term, expected = pair
    assert evaluate(term, values, FUNCTIONS) == expected(values)


@given(formulas(3), VALUES)
@settings(max_examples=300, deadline=None)
def test_a_formula_has_the_value_of_the_expression_it_was_built_from(pair: object, values: dict[str, int]) -> None:
    formula, expected = pair
    assert evaluate(formula, values, FUNCTIONS) == expected(values)
    assert evaluate(negation(formula), values, FUNCTIONS) == (not expected(values))


@given(formulas(2), terms(2), VALUES)
@settings(max_examples=200, deadline=None)
def test_substitution_replaces_a_variable_by_the_value_of_a_term(
    pair: object, other: object, values: dict[str, int]
) -> None:
    formula, expected = pair
    term, number = other
    (a,) = variable("a").variables
    changed = Substitution({a: term}).formula(formula)
    assert evaluate(changed, values, FUNCTIONS) == expected(values | {"a": number(values)})


@given(formulas(2), formulas(2), VALUES)
@settings(max_examples=60, deadline=None)
def test_what_the_solver_calls_implied_is_true_wherever_the_premise_is(
    premise: object, conclusion: object, values: dict[str, int]
) -> None:
    if Solver().implies([premise[0]], conclusion[0]) and premise[1](values):
        assert conclusion[1](values)


def test_equal_expressions_are_one_object() -> None:
    a, b = variable("a"), variable("b")
    assert a + b is b + a
    assert at_most(a * 2, b * 2 + 1) is at_most(a, b)
    assert equal(a, b) is equal(b, a)
    assert negation(negation(less(a, b))) is less(a, b)
    assert floor_division(a * 4 + 5, 4) is a + 1


def test_comparisons_of_a_conditional_are_those_of_its_cases() -> None:
    real = holds("mask", variable("a"))
    assert equal(conditional(real, as_term(1), as_term(0)), 1) is real
    assert negation(equal(conditional(real, as_term(1), as_term(0)), 0)) is real


def test_a_function_is_made_true_everywhere() -> None:
    a = variable("a")
    formula = holds("mask", a) & (negation(holds("mask", a + 1)) | less(a, 3))
    assert with_function_true(formula, "mask") is less(a, 3)


def test_common_factors_of_two_sizes_are_divided_out() -> None:
    rows, tokens = variable("rows"), variable("tokens")
    first, second, common = without_common_factors((rows * 8).times(tokens), rows * 4)
    assert (first, second, common) == (tokens * 8, as_term(4), rows)


def test_no_factor_is_divided_out_of_a_constant() -> None:
    rows, chunks = variable("rows"), floor_division(variable("tokens") * -1, 4)
    first, second, common = without_common_factors(rows, (rows * -128).times(chunks))
    assert (first, second, common) == (as_term(1), chunks * -128, rows)
    first, second, common = without_common_factors(chunks * -1, chunks * -4)
    assert (first, second, common) == (as_term(1), as_term(4), chunks * -1)


def test_a_term_is_divided_by_its_factors() -> None:
    chunks = floor_division(variable("tokens") * -1, 4)
    assert divided(chunks * -4 + 8, 4) is chunks * -1 + 2
    assert divided(chunks * -4 + 6, 4) is None
    assert constant_quotient(chunks * -4, chunks * -1) == 4
    assert constant_quotient(chunks * -4 + 1, chunks * -1) is None
    assert constant_quotient(chunks * -1, chunks * -4) is None


@pytest.mark.parametrize(("chunks", "implied"), [(1, True), (0, False)])
def test_a_product_of_positive_sizes_is_at_least_each_of_them(chunks: int, *, implied: bool) -> None:
    rows, n = variable("rows"), variable("n")
    premises = (at_most(2, rows), at_most(chunks, n))
    assert Solver().implies(premises, at_most(rows, rows.times(n))) is implied
    assert Solver().implies(premises, at_most(n, rows.times(n))) is implied


@pytest.mark.parametrize(
    ("premises", "conclusion", "implied"),
    [
        ("j <= i, i < t", "j < t", True),
        ("i < t", "j < t", False),
        ("mask(i), i == j", "mask(j)", True),
    ],
)
def test_the_solver_decides_the_implications_of_a_causal_mask(premises: str, conclusion: str, *, implied: bool) -> None:
    i, j, t = variable("i"), variable("j"), variable("t")
    stated = {
        "j <= i": at_most(j, i), "i < t": less(i, t), "j < t": less(j, t), "mask(i)": holds("mask", i),
        "mask(j)": holds("mask", j), "i == j": equal(i, j),
    }  # fmt: skip
    assert Solver().implies([stated[p] for p in premises.split(", ")], stated[conclusion]) is implied


def test_the_solver_asks_once_for_each_implication() -> None:
    i, j, solver = variable("i"), variable("j"), Solver()
    for _ in range(3):
        assert not solver.implies([at_most(i, j)], less(i, j))
    assert solver.queries == 1


def test_a_counterexample_refutes_other_premises_without_a_query() -> None:
    i, j, n, solver = variable("i"), variable("j"), variable("n"), Solver()
    options = [
        (less(i, j), ()),
        (at_most(i, j), ()),
        (less(i, j + 2), (less(i, j + 1),)),
        (at_most(j, n), (at_most(i, j),)),
    ]
    for _ in range(2):
        assert list(solver.sufficient(options, at_most(i, n))) == [at_most(j, n)]
        assert solver.queries == 2
    assert not list(solver.sufficient(options[:3], at_most(i, n)))


@settings(max_examples=60, deadline=None)
@given(premises=st.lists(formulas(2), min_size=1, max_size=4), conclusion=formulas(2))
def test_the_sufficient_premises_are_those_of_separate_queries(
    premises: list[tuple[Formula, object]], conclusion: tuple[Formula, object]
) -> None:
    found = Solver().sufficient([(one, ()) for one, _ in premises], conclusion[0])
    assert list(found) == [one for one, _ in premises if Solver().implies([one], conclusion[0])]


def test_an_expression_is_printed_once_and_lists_its_products_once() -> None:
    rows, n = variable("rows"), variable("n")
    formula = disjunction(at_most(rows.times(n), 4), equal(rows.times(n), n))
    assert str(formula) is formula.text
    assert [product.text for product in formula.products] == ["n*rows"]
