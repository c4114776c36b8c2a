"""The search for the causes of a difference, on differences that are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orderproof.ports.causes.cause import Candidate
from orderproof.ports.comparison import Profile
from orderproof.ports.explanation import Explanation, explain
from orderproof.ports.reference import Change

TOLERANCE = 1e-5
ROUNDED, NOTHING, LARGE = (Change() for _ in range(3))
TABLE = Candidate("norm or constant precision", "activation", "in float32", "from a table", ROUNDED, rounds=True)
OTHER = Candidate("cache offset", "positions", "counted on", "one too large", NOTHING)
WINDOW = Candidate("window", "sliding_window", "6", "7", LARGE)
Values = Mapping[tuple[int, ...], Sequence[float]]  # by the identities of the changes


def key(*changes: Change) -> tuple[int, ...]:
    return tuple(map(id, changes))


def searched(start: Sequence[float], left: Values, effects: Mapping[int, float], *candidates: Candidate) -> Explanation:
    """The explanation, with boundary effects of one token by the number of copies."""

    def profile_of(changes: Sequence[Change]) -> Profile:
        return Profile(tuple(left.get(key(*changes), start)), TOLERANCE)

    def boundary_of(changes: Sequence[Change], copies: int) -> Profile:
        return Profile((0.0, effects[copies] + 1e-4 * any(each is NOTHING for each in changes)), TOLERANCE)

    return explain(profile_of, boundary_of, Profile(tuple(start), TOLERANCE), candidates)


def test_a_change_that_removes_nothing_is_no_second_cause_although_the_boundary_effect_is_larger_with_it() -> None:
    left = {key(ROUNDED): (1e-7, 5e-5), key(ROUNDED, NOTHING): (1e-7, 4.9e-5)}
    found = searched((2e-3, 2e-3), left, {3: 1e-6, 12: 1e-6}, TABLE, OTHER)
    assert [each.candidate for each in found.causes] == [TABLE]
    assert not found.is_complete


def test_a_boundary_effect_that_few_copies_do_not_show_is_looked_for_in_more() -> None:
    found = searched((2e-3, 2e-3), {key(ROUNDED): (1e-7, 5e-5)}, {3: 1e-6, 12: 4e-5}, TABLE, OTHER)
    assert [each.candidate for each in found.causes] == [TABLE]
    assert found.is_complete


def test_a_second_change_that_removes_the_rest_is_a_cause() -> None:
    left = {key(ROUNDED): (1e-7, 1e-2), key(ROUNDED, LARGE): (1e-7, 2e-5)}
    found = searched((2e-3, 1e-2), left, {3: 1e-5, 12: 1e-5}, TABLE, WINDOW)
    assert [each.candidate for each in found.causes] == [TABLE, WINDOW]
    assert found.is_complete
