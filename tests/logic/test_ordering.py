"""Nested conditions that share their parts are ordered, negated and translated without their text."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from orderproof.logic.ordering import MAX_NODES, MOST_COUNTED, TEXT_ORDER, TooLarge
from orderproof.logic.rewriting import Substitution, evaluate
from orderproof.logic.solver import Solver
from orderproof.logic.terms import (
    Expression,
    Formula,
    Term,
    at_most,
    conditional,
    conjunction,
    disjunction,
    flat,
    holds,
    negation,
    variable,
)

DEPTH = 60


def nested(depth: int = DEPTH) -> Formula:
    """A formula that uses each level twice in the next: as a tree it has more than 2**depth nodes."""
    formula = at_most(variable("x"), variable("y"))
    for k in range(depth):
        formula = disjunction(
            conjunction(holds(f"left {k}", variable("x")), formula),
            conjunction(holds(f"right {k}", variable("y")), formula),
        )
    return formula


def nested_term(depth: int = DEPTH) -> Term:
    """A term that uses each level twice in the next."""
    term = variable("x")
    for k in range(depth):
        term = conditional(at_most(term, k), term + 1, variable("y"))
    return term


def shared_nodes(expression: Expression) -> set[Expression]:
    """The expressions of which an expression consists, each once."""
    found: set[Expression] = set()
    queue = [expression]
    while queue:
        one = queue.pop()
        if one not in found:
            found.add(one)
            queue += [part for part in flat(one.parts) if isinstance(part, Expression)]
    return found


@pytest.mark.parametrize("build", [nested, nested_term])
def test_nested_conditions_are_built_without_long_texts(build: object) -> None:
    expression = build()  # type: ignore[operator]
    assert expression.size == MOST_COUNTED
    nodes = shared_nodes(expression)
    assert len(nodes) < 10 * DEPTH
    texts = [node.__dict__["text"] for node in nodes if "text" in node.__dict__]
    assert max(map(len, texts)) < 20 * TEXT_ORDER
    with pytest.raises(TooLarge, match=f"more than {MAX_NODES:,} parts"):
        str(expression)
    assert repr(expression) == f"<{type(expression).__name__} {expression.digest.hex()}>"


def test_a_negation_shares_its_parts() -> None:
    formula = nested()
    opposite = negation(formula)
    assert len(shared_nodes(opposite)) < 10 * DEPTH
    assert negation(opposite) is formula


def test_a_substitution_shares_its_parts() -> None:
    moved = Substitution({_only(variable("x")): variable("z")}).formula(nested())
    assert {v.name for v in moved.variables} == {"y", "z"}
    assert len(shared_nodes(moved)) < 10 * DEPTH


def test_a_large_formula_implies_itself_with_less() -> None:
    large = nested()
    assert Solver().implies([large], disjunction(large, at_most(variable("x"), 0)))
    assert Solver().implies([large], at_most(variable("x"), variable("y")))
    assert not Solver().implies([at_most(variable("x"), variable("y"))], large)


def test_large_products_are_different_integers_of_the_solver() -> None:
    first, second = (nested_term().times(variable(name)) for name in ("a", "b"))
    assert not Solver().implies([at_most(first, 0)], at_most(second, 0))
    assert Solver().implies([at_most(first, 0)], at_most(first, 1))


def test_small_operands_are_ordered_by_their_text_and_large_ones_come_last() -> None:
    small = [holds(name, variable("x")) for name in ("zebra", "apple", "mango")]
    large = nested(20)
    assert large.size > TEXT_ORDER
    operands = conjunction(large, *small).parts[0]
    assert [str(f) for f in operands[:3]] == ["apple(x)", "mango(x)", "zebra(x)"]
    assert operands[3] is large


def test_the_order_is_that_of_every_process() -> None:
    code = (
        "from tests.logic.test_ordering import nested, nested_term\n"
        "print([e.digest.hex() for e in (nested(), nested_term())])\n"
    )
    here = str([e.digest.hex() for e in (nested(), nested_term())])
    for seed in ("1", "2"):
        other = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert other.stdout.strip() == here


def test_expressions_of_the_same_parts_have_different_digests() -> None:
    x, y = variable("x"), variable("y")
    expressions = [
        at_most(x, y), at_most(y, x), holds("f", x, y), holds("f", y, x), holds("f", x), holds("fx"), holds("f"),
        negation(holds("f")), conjunction(holds("f"), holds("g")), disjunction(holds("f"), holds("g")), x + 1, x * 2,
    ]  # fmt: skip
    assert len({e.digest for e in expressions}) == len(set(expressions)) == len(expressions)


def test_a_nested_formula_has_the_value_of_its_innermost_condition() -> None:
    small = nested(6)
    functions = {f"{side} {k}": lambda _x: True for side in ("left", "right") for k in range(6)}
    assert evaluate(small, {"x": 1, "y": 2}, functions) is True
    assert evaluate(small, {"x": 3, "y": 2}, functions) is False


def _only(term: Term) -> object:
    (found,) = term.variables
    return found
