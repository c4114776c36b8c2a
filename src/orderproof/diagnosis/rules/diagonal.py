"""Diagonals: an operator that reads two dimensions at the same index.

Lemma (movement_equivariant), for a diagonal: see movement.py. C[.., i] = A[.., i, i] for two dimensions of A.
  1. C[.., i] depends on what A[.., i, i] depends on.
  2. A moved in the same way along both dimensions gives C moved so. Moved along one of them only, or for a diagonal
     next to the main one, C is not determined: [[1, 2], [3, 4]] has the diagonal [1, 4], with exchanged rows [3, 2].
Proof and arithmetic: as there.
Machine-checked (proofs/rules/movement_lemma.v): movement_equivariant.
Machine-checked (proofs/symbolic/moved_axes.v): moved_diagonal, diagonal_of_one_moved_axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orderproof.diagnosis.domain.fact import Fact, compress
from orderproof.diagnosis.domain.move import FREE, STILL, is_permuted
from orderproof.diagnosis.domain.values import ValueRanges
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, rule
from orderproof.diagnosis.rules.movement import LEMMA


@rule(LEMMA, "diagonal")
def diagonal(call: OperatorCall) -> Fact:
    """The diagonal of two dimensions, as the last dimension."""
    fact = call.fact(call.args[0])
    rank = len(fact.shape)
    offset = int(call.argument(1, "offset", 0))
    first, second = (int(call.argument(k, name, k - 2)) % rank for k, name in ((2, "dim1"), (3, "dim2")))
    pair = [fact.moves[first], fact.moves[second]]
    whole = offset == 0 and fact.shape[first] == fact.shape[second]
    moving = [m for m in pair if m is not FREE]
    along = STILL if not whole else moving[0] if moving else FREE
    if any(is_permuted(m) for m in pair) and not (whole and all(m is along for m in moving)):
        raise RuleNotApplicable(
            "a diagonal of two dimensions of which one has the tokens in another order than the other: take it of "
            "scores of the same tokens"
        )

    def taken(array: NDArray[Any]) -> NDArray[Any]:
        full = np.broadcast_to(array, [fact.shape[d] if d in (first, second) else s for d, s in enumerate(array.shape)])
        return compress(np.diagonal(full, offset, first, second))

    ranges = None
    if fact.ranges is not None:
        low = taken(fact.ranges.low)
        ranges = ValueRanges(low, low if fact.ranges.low is fact.ranges.high else taken(fact.ranges.high))
    moves = (*(m for d, m in enumerate(fact.moves) if d not in (first, second)), along)
    return Fact(call.shape, moves, taken(fact.dependence), ranges)
