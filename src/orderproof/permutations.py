"""Permutations of token indices, and the one convention used everywhere.

A permutation ``p`` is an array in which ``p[i]`` is the place token ``i`` goes to:

    X'[p[i]] = X[i]          so that          X' = apply(p, X) = X[inverse(p)]

A law about a group needs only generators: a statement ``f(pX) = p f(X)`` that holds for p and
for q holds for their product, hence for everything they generate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Permutation = NDArray[np.int64]


def identity(size: int) -> Permutation:
    """The permutation that leaves every token where it is."""
    return np.arange(size, dtype=np.int64)


def transposition(size: int, first: int, second: int) -> Permutation:
    """Swap two tokens."""
    p = identity(size)
    p[first], p[second] = second, first
    return p


def cycle(size: int, length: int | None = None) -> Permutation:
    """Send each of the first ``length`` tokens (all by default) one place on, the last of them to the front."""
    length = size if length is None else length
    p = identity(size)
    p[:length] = (p[:length] + 1) % length
    return p


def reversal(size: int) -> Permutation:
    """Send the first token to the last place, and so on."""
    return identity(size)[::-1].copy()


def inverse(p: Permutation) -> Permutation:
    """The permutation that undoes ``p``."""
    q = np.empty_like(p)
    q[p] = np.arange(len(p))
    return q


def symmetric_generators(size: int, movable: int | None = None) -> tuple[Permutation, ...]:
    """Generators of all orderings of the first ``movable`` tokens (all of them by default)."""
    movable = size if movable is None else movable
    if movable < 2:
        return (identity(size),)
    if movable == 2:
        return (transposition(size, 0, 1),)
    return (transposition(size, 0, 1), cycle(size, movable))


def orbits(generators: tuple[Permutation, ...]) -> Permutation:
    """For each index, the smallest index the generated group can carry it to."""
    size = len(generators[0])
    first = identity(size)
    changed = True
    while changed:
        before = first.copy()
        for p in generators:
            low = np.minimum(first, first[p])
            first = low.copy()
            np.minimum.at(first, p, low)
        changed = not np.array_equal(before, first)
    return first


def cycles_text(p: Permutation) -> str:
    """Cycle notation, for people: ``(0 3)(1 2)``; ``()`` for the identity."""
    seen: set[int] = set()
    parts = []
    for start in range(len(p)):
        if start in seen or p[start] == start:
            continue
        loop, i = [], start
        while i not in seen:
            seen.add(i)
            loop.append(str(i))
            i = int(p[i])
        parts.append("(" + " ".join(loop) + ")")
    return "".join(parts) or "()"
