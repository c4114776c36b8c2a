"""What the conditions of a recording fix, and that replacing it loses no condition."""

from __future__ import annotations

import itertools

from orderproof.logic.rewriting import evaluate
from orderproof.logic.terms import (
    as_term,
    at_most,
    conditional,
    conjunction,
    equal,
    floor_division,
    less,
    negation,
    variable,
)
from orderproof.recording.fixed_numbers import fixed_numbers, with_decided_cases

N, B = variable("tokens"), variable("batch")
CHUNKS = floor_division(N + 3, 4)


def test_a_number_that_a_condition_fixes_is_replaced() -> None:
    fixed = fixed_numbers([equal(CHUNKS, 2), less(N, 9)])
    assert fixed.term(CHUNKS * 3 + B) is B + 6
    assert fixed.term(CHUNKS.times(B)) is B * 2
    assert fixed.term(N) is N


def test_a_bound_fixes_nothing() -> None:
    for condition in (at_most(CHUNKS, 2), negation(equal(CHUNKS, 2)), equal(CHUNKS + B, 2), equal(CHUNKS * 2, N)):
        assert fixed_numbers([condition]).term(CHUNKS) is CHUNKS


def test_a_case_that_another_condition_decides_is_replaced() -> None:
    more = less(1, CHUNKS)
    larger = conditional(more, CHUNKS, as_term(1))
    assert with_decided_cases([more, equal(larger.times(B), CHUNKS.times(B))])[0] is more
    assert str(with_decided_cases([more, equal(larger.times(B), CHUNKS.times(B))])[1]) == "true"
    assert with_decided_cases([negation(more), less(larger, 2)]) == [negation(more), less(1, 2)]
    open_case = [less(2, CHUNKS), less(larger, 9)]
    assert with_decided_cases(open_case) == open_case


def test_replaced_conditions_say_what_they_said() -> None:
    """Also where two conditions decide cases in each other."""
    first, second = less(conditional(less(N, 5), B, N), 4), less(conditional(less(B, 3), N, B), 6)
    sets = [
        [less(N, 5), first, second],
        [first, second, less(B, 3), less(N, 5)],
        [less(conditional(first, N, B), 7), first, less(conditional(less(N, 7), B, N), 5)],
    ]
    for conditions in sets:
        replaced = with_decided_cases(conditions)
        assert len(replaced) == len(conditions)
        for tokens, batch in itertools.product(range(9), repeat=2):
            sizes = {"tokens": tokens, "batch": batch}
            values = [evaluate(conjunction(*cs), sizes, {}) for cs in (conditions, replaced)]
            assert values[0] == values[1], (conditions, sizes)
