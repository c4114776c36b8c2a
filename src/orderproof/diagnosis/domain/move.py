"""The move of one dimension of a tensor from the first run to the second.

For a dimension of size s it is one of:

    still          the identity: element i of the first run is element i of the second
    moved          element i goes to element p_g[i], one permutation p_g for each generator g of the group
    free           the tensor is uniform along the dimension in both runs, so every permutation is a move of it

Moves are interned: equal moves are the same object.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from orderproof.permutations import Permutation, cycle_notation, orbit_representatives

Indices = NDArray[np.int64]


class Move:
    """The move of one dimension; build it with `permuted_axis`, or use `STILL` or `FREE`."""

    __slots__ = ("kind", "permutations")

    def __init__(self, kind: str, permutations: Indices | None) -> None:
        self.kind = kind
        self.permutations = permutations  # [generator, size]; None unless moved

    def indices(self, generator: int, size: int) -> Indices:
        """The image of each index under one generator."""
        if self.permutations is None:
            return np.arange(size)
        row: Indices = self.permutations[generator]
        return row

    def orbit_representatives(self) -> Permutation:
        """For each index, the first index of its orbit."""
        assert self.permutations is not None
        return orbit_representatives(tuple(self.permutations))

    def __repr__(self) -> str:
        if self.permutations is None:
            return self.kind
        return "moved by " + ", ".join(cycle_notation(p) for p in self.permutations)


STILL: Final = Move("still", None)
FREE: Final = Move("free", None)
_interned: dict[tuple[tuple[int, ...], bytes], Move] = {}


def permuted_axis(permutations: Indices) -> Move:
    """The move with these permutations [generator, size]; `STILL` if all are the identity."""
    permutations = np.ascontiguousarray(permutations, dtype=np.int64)
    key = (permutations.shape, permutations.tobytes())
    found = _interned.get(key)
    if found is None:
        still = bool((permutations == np.arange(permutations.shape[1])).all())
        found = STILL if still else Move("moved", permutations)
        _interned[key] = found
    return found


def is_permuted(move: Move) -> bool:
    """True if the dimension is permuted."""
    return move.permutations is not None
