"""Permutations of token indices, in one convention.

A permutation ``p`` is an array in which ``p[i]`` is the new index of token ``i``:

    X'[p[i]] = X[i]          so that          X' = apply(p, X) = X[inverse(p)]

Equivariance under a group needs only its generators: if ``f(pX) = p f(X)`` holds for p and for q, it holds for their
product, hence for everything they generate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Permutation = NDArray[np.int64]

# The most loops, and the most entries of one, that cycle notation writes out.
MOST_ENTRIES = 20


def identity(size: int) -> Permutation:
    """The identity permutation."""
    return np.arange(size, dtype=np.int64)


def transposition(size: int, first: int, second: int) -> Permutation:
    """Swap two tokens."""
    p = identity(size)
    p[first], p[second] = second, first
    return p


def cycle(size: int, length: int | None = None) -> Permutation:
    """Shift the first ``length`` tokens (default: all) by one index, the last of them to the front."""
    length = size if length is None else length
    p = identity(size)
    p[:length] = (p[:length] + 1) % length
    return p


def reversal(size: int) -> Permutation:
    """Reverse the order of the tokens."""
    return identity(size)[::-1].copy()


def inverse(p: Permutation) -> Permutation:
    """The inverse of ``p``."""
    q = np.empty_like(p)
    q[p] = np.arange(len(p))
    return q


def symmetric_generators(size: int, movable: int | None = None) -> tuple[Permutation, ...]:
    """Generators of all permutations of the first ``movable`` tokens (default: all)."""
    movable = size if movable is None else movable
    if movable < 2:
        return (identity(size),)
    if movable == 2:
        return (transposition(size, 0, 1),)
    return (transposition(size, 0, 1), cycle(size, movable))


def orbit_representatives(generators: tuple[Permutation, ...]) -> Permutation:
    """The smallest index in the orbit of each index under the generated group."""
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


def cycle_notation(p: Permutation) -> str:
    """Cycle notation: ``(0 3)(1 2)``; ``()`` for the identity; dots in the place of what is too long to be read."""
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
        if len(loop) > MOST_ENTRIES:
            loop[3:-1] = ["..."]
        parts.append("(" + " ".join(loop) + ")")
    if len(parts) > MOST_ENTRIES:
        parts[3:-1] = ["..."]
    return "".join(parts) or "()"
