"""Facts: what is known of a tensor's value in the second run, given its value in the first.

Run the graph on X and on X'. A fact about a tensor T (in the first run) and T' (in the second) says:

    for every element e with dependence[e] below the case:   T'[move(e)] = T[e]

- `moves` holds one `Move` for each dimension.
- `dependence` holds, for each element, the first case that can change it. A permutation law has one case (0): NEVER
  says that the equation holds, ALWAYS that nothing is known. For a dependence law (causal, padding) the cases are the
  cuts j, and the dependence is the largest token index that the element depends on.
- `ranges` holds the range of each element's value in both runs (constants, masks and their results; `values.py`).

Arrays in a fact have every dimension either full or of size 1; size 1 says "the same along it". A hidden state of any
width is [1, n, 1]: memory does not grow with the size of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from orderproof.diagnosis.domain.move import FREE, STILL, Move, is_permuted
from orderproof.diagnosis.domain.values import ValueRanges, same_numbers

Shape = tuple[int, ...]
DependenceArray = NDArray[np.int64]

NEVER: Final = -1  # no case changes the element
ABSENT: Final = -2  # the element is zero in both runs, so that its products are too
ALWAYS: Final = 2**40  # every case may change the element: top of the lattice


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """Of a tensor of indices into rows along `dim`: the positions that every row certainly contains, in both runs.

    `covered` has the rank of the tensor, the length of an indexed row along `dim`, and other dimensions full or 1.
    """

    dim: int
    covered: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Of a tensor that is, in both runs, the Fourier transform along `dim` of rows with `size` places: those rows.

    `half`: only the frequencies that determine a real row. `dependence` is that of the rows' elements, with the rank of
    the tensor, `size` or 1 along `dim`, and ABSENT for elements that are zero in both runs.
    """

    dim: int
    size: int
    half: bool
    dependence: DependenceArray


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about one tensor, as the module's docstring defines it; no ranges: every element is ordinary."""

    shape: Shape
    moves: tuple[Move, ...]
    dependence: DependenceArray
    ranges: ValueRanges | None = None
    index_coverage: IndexCoverage | None = None
    spectrum: Spectrum | None = None

    @property
    def has_no_moves(self) -> bool:
        """True if no dimension is permuted."""
        return not any(is_permuted(m) for m in self.moves)

    def zeros(self, moves: tuple[Move, ...]) -> NDArray[np.bool_] | None:
        """Elements that are exactly zero in both runs, at e and at move(e); None if there are none."""
        if self.ranges is None:
            return None
        zero = holds_at_image_too(self.ranges.exactly(0), moves, self.shape)
        return zero if zero.any() else None

    def describe(self) -> str:
        """One short line for a report."""
        parts = []
        moving = [d for d, m in enumerate(self.moves) if is_permuted(m)]
        if moving:
            parts.append("moves along " + ", ".join(f"dim {d}" for d in moving))
        low, high = int(self.dependence.min()), int(self.dependence.max())
        if high >= ALWAYS:
            parts.append("nothing follows" if low >= ALWAYS else "holds for some elements")
        elif high > NEVER:
            along = [f"dim {d}" for d, s in enumerate(self.dependence.shape) if s > 1]
            parts.append(f"depends on tokens up to {high}" + (" along " + ", ".join(along) if along else ""))
        elif not moving:
            parts.append("unchanged")
        if self.ranges is not None:
            parts.append(f"{int(self.ranges.exact.sum())} known")
        return "; ".join(parts)


def with_ranges_widened(fact: Fact) -> Fact:
    """The same fact with any value for every element that is not exact."""
    ranges = ValueRanges.unbounded(len(fact.shape))
    if fact.ranges is not None and fact.ranges.exact.any():
        ranges = ranges.with_exact(fact.ranges.exact, fact.ranges.low)
    return with_ranges(fact, ranges)


def with_ranges(fact: Fact, ranges: ValueRanges | None) -> Fact:
    """The same moves and dependence with other value ranges, and without index coverage."""
    return Fact(fact.shape, fact.moves, fact.dependence, ranges)


def constant_dependence(rank: int, dependence: int) -> DependenceArray:
    """The same dependence for every element."""
    return np.full((1,) * rank, dependence, dtype=np.int64)


def unmoved_fact(shape: Shape, dependence: int = NEVER, ranges: ValueRanges | None = None) -> Fact:
    """A fact without moves, with the same dependence for every element."""
    return Fact(shape, (STILL,) * len(shape), constant_dependence(len(shape), dependence), ranges)


def constant_fact(shape: Shape) -> Fact:
    """The fact about a tensor with the same value in both runs."""
    return unmoved_fact(shape, NEVER)


def compress(array: NDArray[Any]) -> NDArray[Any]:
    """The array with size 1 along each dimension in which it does not change."""
    for d in range(array.ndim):
        if array.shape[d] > 1:
            first = array[(slice(None),) * d + (slice(0, 1),)]
            if same_numbers(array, first).all():
                array = first
    return array


def pull_back(array: NDArray[Any], moves: tuple[Move, ...], shape: Shape, generator: int) -> NDArray[Any]:
    """The array read at move(e): result[e] = array[move(e)]. Dimensions of size 1 stay so."""
    for d, move in enumerate(moves):
        if is_permuted(move) and array.shape[d] > 1:
            array = np.take(array, move.indices(generator, shape[d]), axis=d)
    return array


def generator_count(moves: tuple[Move, ...]) -> int:
    """The number of generators of these moves; 0 without a permuted dimension."""
    return max((len(m.permutations) for m in moves if m.permutations is not None), default=0)


def holds_at_image_too(mask: NDArray[np.bool_], moves: tuple[Move, ...], shape: Shape) -> NDArray[np.bool_]:
    """Elements e of the mask whose image move(e) is in the mask too, for every generator."""
    result = mask
    for g in range(generator_count(moves)):
        result = result & pull_back(mask, moves, shape, g)
    return result


def is_compatible(move: Move, target: Move) -> bool:
    """True if a dimension with the move `move` also has the move `target`."""
    return move is target or move is FREE


def fact_with_ranges(
    shape: Shape, moves: tuple[Move, ...], dependence: DependenceArray, ranges: ValueRanges | None
) -> Fact:
    """A fact with these ranges; elements with one exact value at e and at move(e) depend on nothing."""
    if ranges is None or ranges.is_ordinary:
        return Fact(shape, moves, compress(dependence))
    same: NDArray[np.bool_] = ranges.exact
    for g in range(generator_count(moves)):
        for ends in (ranges.low, ranges.high)[: 1 if ranges.low is ranges.high else 2]:
            same = same & (pull_back(ends, moves, shape, g) == ends)
    dependence = np.where(same, NEVER, dependence)
    return Fact(shape, moves, compress(dependence), ranges.map(compress))
