"""The one convention of permutations, and what the generators generate."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from orderproof.permutations import (
    Permutation,
    cycle,
    cycle_notation,
    identity,
    inverse,
    orbit_representatives,
    reversal,
    symmetric_generators,
    transposition,
)

SIZES = [1, 2, 3, 5]


def generated(generators: tuple[Permutation, ...]) -> set[tuple[int, ...]]:
    size = len(generators[0])
    found = {tuple(range(size))}
    while True:
        more = found | {tuple(int(g[i]) for i in p) for p in found for g in generators}
        if more == found:
            return found
        found = more


@pytest.mark.parametrize("size", SIZES)
def test_token_i_moves_to_index_p_of_i(size: int) -> None:
    x = np.arange(size) * 10
    for each in permutations(range(size)):
        p = np.array(each)
        moved = x[inverse(p)]
        assert all(moved[p[i]] == x[i] for i in range(size))
        assert np.array_equal(inverse(inverse(p)), p)
        assert np.array_equal(p[inverse(p)], identity(size))


def test_cycle_shifts_each_token_by_one_and_the_last_to_the_front() -> None:
    assert cycle(4).tolist() == [1, 2, 3, 0]
    assert cycle(5, 3).tolist() == [1, 2, 0, 3, 4]
    assert transposition(4, 1, 3).tolist() == [0, 3, 2, 1]
    assert reversal(4).tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(("size", "movable"), [(n, m) for n in SIZES for m in (None, *range(n + 1))])
def test_generators_generate_exactly_the_permutations_of_the_movable_tokens(size: int, movable: int | None) -> None:
    count = size if movable is None else movable
    expected = {(*p, *range(count, size)) for p in permutations(range(count))}
    assert generated(symmetric_generators(size, movable)) == expected


@pytest.mark.parametrize(
    ("generators", "first"),
    [
        (symmetric_generators(5), [0, 0, 0, 0, 0]),
        (symmetric_generators(5, 4), [0, 0, 0, 0, 4]),
        ((reversal(5),), [0, 1, 2, 1, 0]),
        ((identity(3),), [0, 1, 2]),
        ((transposition(6, 1, 5), transposition(6, 3, 5)), [0, 1, 2, 1, 4, 1]),
    ],
)
def test_orbit_is_named_by_its_smallest_member(generators: tuple[Permutation, ...], first: list[int]) -> None:
    assert orbit_representatives(generators).tolist() == first


def test_orbits_are_those_of_the_generated_group() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        chosen = tuple(generator.permutation(6) for _ in range(2))
        group = generated(chosen)
        assert orbit_representatives(chosen).tolist() == [
            min(j for j in range(6) if any(p[j] == i for p in group)) for i in range(6)
        ]


@pytest.mark.parametrize(
    ("p", "text"), [([3, 2, 1, 0], "(0 3)(1 2)"), ([0, 1], "()"), ([1, 2, 0, 3], "(0 1 2)"), ([], "()")]
)
def test_cycle_notation_of_examples(p: list[int], text: str) -> None:
    assert cycle_notation(np.array(p, dtype=np.int64)) == text


def test_cycle_notation_of_many_tokens_is_short() -> None:
    forward = np.arange(2048, dtype=np.int64)
    assert cycle_notation(np.roll(forward, -1)) == "(0 1 2 ... 2047)"
    assert cycle_notation(forward[::-1]) == "(0 2047)(1 2046)(2 2045)...(1023 1024)"
