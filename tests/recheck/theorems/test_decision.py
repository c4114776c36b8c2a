"""The decision procedure of the recheck, compared with Z3 on random formulas, and on formulas with a known answer."""

from __future__ import annotations

import random
from typing import Any

import pytest
import z3

from orderproof_recheck.logic.decision import Decision
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    AtMostZero,
    Every,
    Formula,
    Holds,
    IsZero,
    Not,
    Some,
    at_most,
    equal,
    every,
    holds,
    if_else,
    less,
    opposite,
    some,
)
from orderproof_recheck.logic.notation import read_formula, written
from orderproof_recheck.logic.terms import (
    Apply,
    Expression,
    Floor,
    If,
    Term,
    Variable,
    apply,
    floor_of,
    integer,
    remainder_of,
    variable,
)

X, Y, Z, N = map(variable, "xyzn")


def _term(chance: random.Random, depth: int) -> Term:
    kind = chance.random()
    if kind < 0.4 or depth == 0:
        return chance.choice([X, Y, Z, N]) * chance.choice([1, 1, 1, -1, 2, 3]) + chance.randint(-3, 3)
    if kind < 0.5:
        return integer(chance.randint(-3, 3))
    if kind < 0.7:
        return _term(chance, depth - 1) + _term(chance, depth - 1)
    if kind < 0.8:
        return if_else(_formula(chance, depth - 1), _term(chance, depth - 1), _term(chance, depth - 1))
    if kind < 0.9:
        return floor_of(_term(chance, depth - 1), chance.randint(2, 4))
    return apply("f", _term(chance, depth - 1))


def _formula(chance: random.Random, depth: int) -> Formula:
    kind = chance.random()
    if depth == 0 or kind < 0.4:
        return chance.choice([at_most, less, equal])(_term(chance, 2), _term(chance, 1))
    if kind < 0.5:
        return holds("p", _term(chance, 1))
    if kind < 0.6:
        return opposite(_formula(chance, depth - 1))
    return chance.choice([every, some])(*(_formula(chance, depth - 1) for _ in range(chance.randint(2, 3))))


def _for_z3(e: Expression) -> Any:
    match e:
        case Term(fields=(constant, summands)):
            return z3.Sum([z3.IntVal(constant), *(_for_z3(a) * f for a, f in summands)])
        case Variable(fields=(name,)):
            return z3.Int(name)
        case Apply(fields=(name, (argument,))):
            return z3.Function(name, z3.IntSort(), z3.IntSort())(_for_z3(argument))
        case Holds(fields=(name, (argument,))):
            return z3.Function(name, z3.IntSort(), z3.BoolSort())(_for_z3(argument))
        case If(fields=parts):
            return z3.If(*map(_for_z3, parts))
        case Floor(fields=(term, divisor)):
            return _for_z3(term) / divisor
        case AtMostZero(fields=(term,)):
            return _for_z3(term) <= 0
        case IsZero(fields=(term,)):
            return _for_z3(term) == 0
        case Not(fields=(inner,)):
            return z3.Not(_for_z3(inner))
        case Every(fields=(parts,)):
            return z3.And(*map(_for_z3, parts))
        case Some(fields=(parts,)):
            return z3.Or(*map(_for_z3, parts))
    return z3.BoolVal(e is TRUE)


def _compared(count: int, seed: int) -> tuple[int, int]:
    """How many formulas Z3 refutes, and how many of these the procedure does. It must refute no other."""
    chance, decision, refuted, found = random.Random(seed), Decision(), 0, 0
    for _ in range(count):
        formula = every(*(_formula(chance, 3) for _ in range(chance.randint(2, 5))))
        assert read_formula(written(formula)) is formula
        solver = z3.Solver()
        solver.set("timeout", 3000)
        solver.add(_for_z3(formula))
        answer, mine = solver.check(), decision.implies(formula, FALSE)
        assert not (mine and answer == z3.sat), written(formula)
        refuted += answer == z3.unsat
        found += mine
    return refuted, found


def test_it_refutes_only_what_z3_does_not_satisfy() -> None:
    refuted, found = _compared(100, 1)
    assert refuted > 10
    assert found >= 0.95 * refuted


@pytest.mark.slow
def test_it_refutes_only_what_z3_does_not_satisfy_in_many_formulas() -> None:
    refuted, found = _compared(10_000, 2)
    assert refuted > 1000
    assert found >= 0.95 * refuted


@pytest.mark.parametrize(
    ("premise", "conclusion", "follows"),
    [
        (every(at_most(X, Y), at_most(Y, Z)), at_most(X, Z), True),
        (every(at_most(X, Y), at_most(Y, Z)), less(X, Z), False),
        (every(equal(X, Y), holds("m", X)), holds("m", Y), True),
        (holds("m", X), holds("m", Y), False),
        (every(equal(apply("d", X), Z), opposite(equal(apply("d", Y), Z))), opposite(equal(X, Y)), True),
        (equal(X * 2, Y * 2 + 1), FALSE, True),
        (every(less(X * 2, 3), less(1, X * 2)), equal(X, 1), True),
        (at_most(0, X), at_most(remainder_of(X, 4), 3), True),
        (at_most(0, X), at_most(remainder_of(X, 4), 2), False),
        (equal(floor_of(X, 4), floor_of(Y, 4)), at_most(X - Y, 3), True),
        (TRUE, at_most(if_else(less(X, 0), integer(0), X), X), False),
        (at_most(0, X), at_most(if_else(less(X, 0), integer(0), X), X), True),
        (every(less(0, X), at_most(X, 4)), opposite(equal(remainder_of(floor_of(X * -1, 4) * -1, 4), 0)), True),
        (every(less(0, X), at_most(X, 16)), opposite(equal(remainder_of(floor_of(X * -1, 4) * -1, 4), 0)), False),
        (every(at_most(X, Y * 4), at_most(Y * 4, X + 2)), FALSE, False),
    ],
)
def test_known_answers(premise: Formula, conclusion: Formula, follows: bool) -> None:
    assert Decision().implies(premise, conclusion) is follows
