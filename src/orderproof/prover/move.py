"""How one dimension of a tensor moves from the first run to the second.

A move is one of three things, for a dimension of size s:

    still          element i stays element i
    moved          element i goes to element p_g[i], one permutation p_g for each generator g of the group
    free           the tensor is constant along the dimension (in both runs), so every move is true of it

Moves are interned: two equal moves are the same object, so that comparing them costs nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from orderproof.permutations import Permutation, cycles_text, orbits

Indices = NDArray[np.int64]


class Move:
    """One dimension's move; build with `moved`, or use `STILL` and `FREE`."""

    __slots__ = ("kind", "permutations")

    def __init__(self, kind: str, permutations: Indices | None) -> None:
        self.kind = kind
        self.permutations = permutations  # [generator, size], for a moved dimension only

    def indices(self, generator: int, size: int) -> Indices:
        """Where each index goes under one generator."""
        if self.permutations is None:
            return np.arange(size)
        row: Indices = self.permutations[generator]
        return row

    def representatives(self) -> Permutation:
        """For each index, the first index of its orbit."""
        assert self.permutations is not None
        return orbits(tuple(self.permutations))

    def __repr__(self) -> str:
        if self.permutations is None:
            return self.kind
        return "moved by " + ", ".join(cycles_text(p) for p in self.permutations)


STILL: Final = Move("still", None)
FREE: Final = Move("free", None)
_interned: dict[tuple[tuple[int, ...], bytes], Move] = {}


def moved(permutations: Indices) -> Move:
    """The move with these permutations [generator, size]; `STILL` if none of them moves anything."""
    permutations = np.ascontiguousarray(permutations, dtype=np.int64)
    key = (permutations.shape, permutations.tobytes())
    found = _interned.get(key)
    if found is None:
        still = bool((permutations == np.arange(permutations.shape[1])).all())
        found = STILL if still else Move("moved", permutations)
        _interned[key] = found
    return found


def is_moved(move: Move) -> bool:
    """Whether the dimension is permuted."""
    return move.permutations is not None
