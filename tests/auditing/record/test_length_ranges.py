"""The lengths that recordings cover together, and the conditions that are left."""

from __future__ import annotations

import itertools

import pytest

from orderproof.auditing.record.length_ranges import (
    Coverage,
    Piece,
    covered_lengths,
    have_lengths_in_common,
    length_bounds,
)
from orderproof.auditing.record.open_inputs import NoTheorem
from orderproof.logic.rewriting import evaluate
from orderproof.logic.solver import Solver
from orderproof.logic.terms import (
    FALSE,
    Formula,
    apply,
    at_most,
    conjunction,
    disjunction,
    equal,
    floor_division,
    less,
    negation,
    remainder,
)
from orderproof.theorems.statement import BATCH, TOKENS

NOT_SEVEN, NOT_FIVE_ROWS = negation(equal(TOKENS, 7)), negation(equal(BATCH, 5))
OPAQUE = equal(apply("opaque"), 0)
BLOCKS = floor_division(-TOKENS, 4)
IN_ONE_BLOCK = equal(BATCH + BATCH.times(BLOCKS), 0)


def piece(least: int, greatest: int | None, *others: Formula) -> Piece:
    return Piece((), least, greatest, others, "")


def covered(*pieces: Piece) -> Coverage:
    return covered_lengths(pieces, Solver())


@pytest.mark.parametrize(
    "other",
    [
        negation(OPAQUE),  # would contradict the condition of the first piece
        equal(TOKENS, 3),
        OPAQUE & equal(TOKENS, 3),
    ],
)
def test_a_piece_with_conditions_of_its_own_is_not_joined(other: Formula) -> None:
    first = piece(5, None, OPAQUE)
    assert covered(first, piece(2, 4, other)) == Coverage((first,), 5, None, (OPAQUE,))


def test_a_piece_that_needs_no_more_than_the_conditions_of_the_first_is_joined() -> None:
    first = piece(5, 9, NOT_FIVE_ROWS)
    others = (piece(2, 4), piece(10, None, NOT_FIVE_ROWS))
    assert covered(first, *others) == Coverage((first, *others), 2, None, (NOT_FIVE_ROWS,))
    assert covered(first, piece(2, 4, less(BATCH, 5) | less(5, BATCH))).least == 2


def test_pieces_without_conditions_that_adjoin_are_joined() -> None:
    pieces = (piece(5, 9), piece(2, 4), piece(10, None), piece(20, 30))
    assert covered(*pieces) == Coverage(pieces[:3], 2, None)


def test_pieces_that_cover_every_length_need_no_conditions() -> None:
    even, odd = equal(remainder(TOKENS, 2), 0), equal(remainder(TOKENS, 2), 1)
    pieces = (piece(2, None, even), piece(2, None, odd))
    assert covered(*pieces) == Coverage(pieces, 2, None)


def test_a_piece_of_which_the_conditions_leave_no_length_is_not_joined() -> None:
    first = piece(5, None, NOT_SEVEN & negation(IN_ONE_BLOCK))
    assert covered(first, piece(2, 4)).pieces == (first,)


@pytest.mark.parametrize(
    "conditions",
    [
        (FALSE,),
        (NOT_SEVEN, equal(TOKENS, 7)),
        (OPAQUE, negation(OPAQUE)),
        (less(apply("opaque"), 0), less(0, apply("opaque"))),  # of which only the solver knows
        (equal(BATCH.times(TOKENS), 7),),
    ],
)
def test_nothing_is_covered_under_conditions_that_no_length_fulfils(conditions: tuple[Formula, ...]) -> None:
    with pytest.raises(NoTheorem, match="no length fulfils"):
        covered(piece(2, None, *conditions))
    with pytest.raises(NoTheorem, match="no length fulfils"):
        covered(piece(5, None, *conditions), piece(2, 4))
    first = piece(5, None)
    assert covered(first, piece(2, 4, *conditions)).pieces == (first,)


def test_lengths_in_common_fulfil_the_conditions_of_all() -> None:
    long, short = Coverage((piece(5, None),), 5, None), Coverage((piece(2, None),), 2, None, (IN_ONE_BLOCK,))
    assert have_lengths_in_common([short, short], Solver())
    assert not have_lengths_in_common([long, short], Solver())
    opposite = [Coverage((piece(2, None),), 2, None, (c,)) for c in (OPAQUE, negation(OPAQUE))]
    assert not have_lengths_in_common(opposite, Solver())


@pytest.mark.parametrize(
    ("condition", "least", "greatest"),
    [
        (IN_ONE_BLOCK, 2, 4),
        (negation(IN_ONE_BLOCK), 5, None),
        (at_most(BATCH.times(TOKENS) - BATCH * 9, 0), 2, 9),
        (at_most(TOKENS.times(BATCH).times(TOKENS) - BATCH.times(TOKENS) * 9, 0), 2, 9),
        (negation(equal(BATCH.times(TOKENS), 0)), 2, None),
    ],
)
def test_open_sizes_are_divided_out_of_conditions(condition: Formula, least: int, greatest: int | None) -> None:
    assert length_bounds([condition], Solver()) == (least, greatest, ())


def test_bounds_and_conditions_that_are_left_say_what_the_conditions_say() -> None:
    terms = [
        BATCH + BATCH.times(BLOCKS), BATCH.times(TOKENS) - BATCH * 3, TOKENS.times(BLOCKS) + TOKENS * 2, BATCH - TOKENS,
        TOKENS.times(TOKENS) - TOKENS * 4, BATCH.times(BLOCKS) + TOKENS, BATCH.times(BATCH).times(BLOCKS),
    ]  # fmt: skip
    single = [f for t in terms for g in (equal(t, 0), at_most(t, 0), at_most(-t, 0)) for f in (g, negation(g))]
    joined = [join(a, b) for join in (conjunction, disjunction) for a, b in itertools.pairwise(single)]
    for condition in (*single, *joined):
        least, greatest, others = length_bounds([condition], Solver())
        for batch, tokens in itertools.product(range(2, 6), range(2, 14)):
            sizes = {"batch": batch, "tokens": tokens}
            inside = least <= tokens and (greatest is None or tokens <= greatest)
            found = inside and all(evaluate(c, sizes, {}) for c in others)
            assert found == evaluate(condition, sizes, {}), (condition, sizes)
