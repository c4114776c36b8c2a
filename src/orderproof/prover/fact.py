"""Facts: what is known of a tensor's value in the second run, given its value in the first.

Run the graph on X and on X'. A fact about a tensor T (of the first run) and T' (of the second) says:

    for every element e with level[e] below the case:   T'[move(e)] = T[e]

- `moves` holds one `Move` for each dimension.
- `level` holds, for each element, the first case that can change it. For a permutation law there is one
  case (0): a level of `NEVER` says that the equation holds, `ALWAYS` says that nothing follows. For an
  influence law the cases are the cuts j, and the level is the largest token index the element depends on.
- `known` says which elements have a value known in both runs (constants, masks and what they make).

Arrays in a fact have every dimension either full or of size 1; size 1 says "the same along it". A hidden
state is [1, n, 1] whatever its width: that is what keeps a 405-billion-parameter model cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from orderproof.prover.move import FREE, STILL, Move, is_moved

Shape = tuple[int, ...]
Levels = NDArray[np.int64]

NEVER: Final = -1  # no case changes it
ALWAYS: Final = 2**40  # every case may change it: nothing follows

# What is known of one element's value in both runs.
UNKNOWN: Final = 0  # an ordinary number
EXACT: Final = 1  # exactly `value`
MASKED: Final = 2  # so negative that a softmax with any ordinary entry beside it makes it exactly zero
UNSURE: Final = 3  # anything: may be masked, infinite or no number
LOW: Final = 4  # ordinary, or as negative as a mask (-inf included): never +inf, never NaN; data decide which

LARGE: Final = 1e8  # a mask at least this negative is a mask, under the assumption on the scores
FLOAT16_LARGE: Final = 6e4  # float16 has nothing larger than 65504


@dataclass(frozen=True, slots=True)
class Known:
    """Which elements are known, and their values; both arrays have dimensions full or 1."""

    status: NDArray[np.uint8]
    value: NDArray[Any]

    def where(self, status: int) -> NDArray[np.bool_]:
        """The elements with this status."""
        found: NDArray[np.bool_] = self.status == status
        return found


@dataclass(frozen=True, slots=True)
class Among:
    """Of a tensor that holds places of lines along `dim`: which places are among them, in both runs.

    `sure` has the rank of the tensor, the length of a line along `dim`, and other dimensions full or 1.
    """

    dim: int
    sure: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about one tensor; see the module's text."""

    shape: Shape
    moves: tuple[Move, ...]
    level: Levels
    known: Known | None = None
    among: Among | None = None

    @property
    def valid(self) -> bool:
        """Whether no case changes anything."""
        return bool((self.level == NEVER).all())

    @property
    def unmoved(self) -> bool:
        """Whether no dimension is permuted."""
        return not any(is_moved(m) for m in self.moves)

    def zeros(self, moves: tuple[Move, ...]) -> NDArray[np.bool_] | None:
        """Elements that are exactly zero in both runs, at e and at move(e); None where there are none."""
        if self.known is None:
            return None
        zero = both_ends(self.known.where(EXACT) & (self.known.value == 0), moves, self.shape)
        return zero if zero.any() else None

    def describe(self) -> str:
        """One short line, for people."""
        parts = []
        moving = [d for d, m in enumerate(self.moves) if is_moved(m)]
        if moving:
            parts.append("moves along " + ", ".join(f"dim {d}" for d in moving))
        low, high = int(self.level.min()), int(self.level.max())
        if high >= ALWAYS:
            parts.append("nothing follows" if low >= ALWAYS else "holds for some elements")
        elif high > NEVER:
            along = [f"dim {d}" for d, s in enumerate(self.level.shape) if s > 1]
            parts.append(f"depends on tokens up to {high}" + (" along " + ", ".join(along) if along else ""))
        elif not moving:
            parts.append("unchanged")
        if self.known is not None:
            parts.append(f"{int(self.known.where(EXACT).sum())} known")
        return "; ".join(parts)


def may_mask(known: Known | None) -> bool:
    """Whether some element may be as negative as a mask, or infinite."""
    if known is None:
        return False
    huge = known.where(EXACT) & ~(np.abs(known.value) < FLOAT16_LARGE) if known.value.dtype.kind == "f" else False
    return bool((known.status >= MASKED).any() or np.any(huge))


def unsure(fact: Fact) -> Fact:
    """The same fact, its ordinary elements no longer taken to be ordinary."""
    one = (1,) * len(fact.shape)
    if fact.known is None:
        return Fact(fact.shape, fact.moves, fact.level, Known(np.full(one, UNSURE, dtype=np.uint8), np.zeros(one)))
    vague = (fact.known.status == UNKNOWN) | (fact.known.status == LOW)
    status = np.where(vague, UNSURE, fact.known.status).astype(np.uint8)
    return Fact(fact.shape, fact.moves, fact.level, Known(status, fact.known.value))


def uniform(rank: int, level: int) -> Levels:
    """A level that is the same for every element."""
    return np.full((1,) * rank, level, dtype=np.int64)


def still(shape: Shape, level: int = NEVER, known: Known | None = None) -> Fact:
    """The fact that nothing moves, at one level."""
    return Fact(shape, (STILL,) * len(shape), uniform(len(shape), level), known)


def constant(shape: Shape) -> Fact:
    """The fact about a tensor that is the same in both runs."""
    return still(shape, NEVER)


def compress(array: NDArray[Any]) -> NDArray[Any]:
    """Store a dimension along which nothing changes with size 1."""
    for d in range(array.ndim):
        if array.shape[d] > 1:
            first = array[(slice(None),) * d + (slice(0, 1),)]
            if array.dtype.kind in "fc":
                same = bool(((array == first) | ((array != array) & (first != first))).all())
            else:
                same = bool((array == first).all())
            if same:
                array = first
    return array


def carry(array: NDArray[Any], moves: tuple[Move, ...], shape: Shape, generator: int) -> NDArray[Any]:
    """The array read at move(e): result[e] = array[move(e)]. Dimensions of size 1 stay so."""
    for d, move in enumerate(moves):
        if is_moved(move) and array.shape[d] > 1:
            array = np.take(array, move.indices(generator, shape[d]), axis=d)
    return array


def generators_of(moves: tuple[Move, ...]) -> int:
    """How many generators these moves have (0 when nothing moves)."""
    return max((len(m.permutations) for m in moves if m.permutations is not None), default=0)


def both_ends(mask: NDArray[np.bool_], moves: tuple[Move, ...], shape: Shape) -> NDArray[np.bool_]:
    """Elements e of the mask whose image move(e) is in the mask too, for every generator."""
    result = mask
    for g in range(generators_of(moves)):
        result = result & carry(mask, moves, shape, g)
    return result


def agrees(move: Move, target: Move) -> bool:
    """Whether a dimension that moves like `move` may be said to move like `target`."""
    return move is target or move is FREE


def with_known(shape: Shape, moves: tuple[Move, ...], level: Levels, known: Known | None) -> Fact:
    """A fact in which elements known to be the same at e and at move(e) are changed by no case."""
    if known is None or not known.status.any():
        return Fact(shape, moves, compress(level))
    same: NDArray[np.bool_] = known.where(EXACT)
    for g in range(generators_of(moves)):
        image = carry(known.value, moves, shape, g)
        same = same & (carry(known.status, moves, shape, g) == EXACT) & (image == known.value)
    level = np.where(same, NEVER, level)
    return Fact(shape, moves, compress(level), Known(compress(known.status), compress(known.value)))
