"""A term is only kept as the value of an integer tensor where it cannot wrap around."""

from __future__ import annotations

import random

import pytest
import torch

from orderproof.logic.solver import Solver
from orderproof.logic.terms import (
    Term,
    apply,
    as_term,
    at_most,
    conditional,
    floor_division,
    maximum,
)
from orderproof.number_limits import FINITE_SCORES_ASSUMPTION, SMALL_INTEGERS_ASSUMPTION
from orderproof.theorems.facts.open_fact import index
from orderproof.theorems.statement import BATCH, TOKENS
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.overflow import _Ranges, fits
from orderproof_recheck import assumptions, limits
from orderproof_recheck.facts import index as index_of_recheck
from orderproof_recheck.logic import terms
from orderproof_recheck.logic.formulas import at_most as at_most_of_recheck

K = 16_000_001
SIZES = (BATCH, TOKENS)
X = index(1)
POSITION = apply("position", index(0), X)


def context(*of_inputs: str) -> Context:
    return Context(Solver(), (at_most(2, TOKENS), at_most(2, BATCH)), lambda _: (), of_inputs=frozenset(of_inputs))


@pytest.mark.parametrize(
    ("term", "fitting"),
    [
        (X * K, True),
        (X * K * 100_000, False),
        (floor_division(X * K + 1, 2) * K * 3000, False),
        (floor_division(X, K) * K * K, True),
        (maximum(X * K, X * 0) * K * 200, False),
        (conditional(at_most(X, 3), X, as_term(7)) * 2**20, True),
        (TOKENS.times(BATCH), True),
        (TOKENS.times(BATCH) * 5, False),
        (-apply("power", X), False),
        (apply("power", X) + 1, False),
        (apply("power", X), True),
    ],
    ids=str,
)
def test_a_term_of_sizes_fits_or_does_not(term: Term, fitting: bool) -> None:
    walk = context()
    assert fits(walk, term, SIZES, torch.int64) is fitting
    assert not walk.assumptions


def test_unknown_integers_are_assumed_to_be_small_where_it_matters() -> None:
    for term, assumed in ((POSITION, False), (POSITION + -1, True), (POSITION * K, True)):
        walk = context()
        assert fits(walk, term, SIZES, torch.int64)
        assert (SMALL_INTEGERS_ASSUMPTION in walk.assumptions) is assumed, term
    assert not fits(context(), maximum(POSITION * K, POSITION * 0) * K, SIZES, torch.int64)


def test_integers_that_are_computed_from_sizes_alone_are_not_assumed_to_be_small() -> None:
    power = apply("power", X)
    assert not fits(context(), power * 16, SIZES, torch.int64)
    walk = context("power")
    assert fits(walk, power * 16, SIZES, torch.int64)
    assert SMALL_INTEGERS_ASSUMPTION in walk.assumptions


def _pair(chance: random.Random, depth: int) -> tuple[Term, terms.Term]:
    """The same term for the prover and for the recheck."""
    if depth == 0:
        return chance.choice([
            (X, index_of_recheck(1)), (TOKENS, terms.variable("tokens")),
            (apply("f", X), terms.apply("f", index_of_recheck(1))), (as_term(3), terms.integer(3)),
        ])  # fmt: skip
    first, second = _pair(chance, depth - 1), _pair(chance, depth - 1)
    factor, divisor = chance.randint(-9, 9), chance.randint(2, 9)
    return chance.choice([
        (first[0] * factor, first[1] * factor), (first[0] + second[0], first[1] + second[1]),
        (floor_division(first[0], divisor), terms.floor_of(first[1], divisor)),
        (first[0].times(second[0]), first[1].times(second[1])),
        (
            conditional(at_most(X, 5), first[0], second[0]),
            terms.of_atom(terms.make(terms.If, at_most_of_recheck(index_of_recheck(1), 5), first[1], second[1]))
            if first[1] is not second[1]
            else first[1],
        ),
    ])  # fmt: skip


def test_the_recheck_states_the_same_assumptions() -> None:
    assert assumptions.FINITE_SCORES_ASSUMPTION == FINITE_SCORES_ASSUMPTION
    assert assumptions.SMALL_INTEGERS_ASSUMPTION == SMALL_INTEGERS_ASSUMPTION


def test_the_recheck_has_the_same_limits() -> None:
    chance = random.Random(0)
    axes = (terms.variable("batch"), terms.variable("tokens"))
    for _ in range(300):
        term, again = _pair(chance, 4)
        small = _Ranges(context("f"), SIZES, limits.SMALL).of(term)
        assert small == limits.Limits(axes, {"f"}).limit(again), term
        assert _Ranges(context(), SIZES, limits.SMALL).of(term) == limits.Limits(axes).limit(again), term
