"""The fact about one tensor of an open graph: which of its axes move with the tokens.

Run 2 has the tokens in another order: token i of run 1 is token p(i) of run 2, for any permutation p. A fact says that
run 2 computes the same tensor, with p applied to the indices of the axes that move:

    T2[s(x)] = T1[x],   s = p on each axis that is MOVED, the identity on each that is STILL.

A tensor that is the same for all indices of an axis (FREE) fulfils both. A dimension is a product of axes, as in
`open_fact.py`, so that rows and tokens may be merged and taken apart again. Sums along a moved axis have the same terms
in another order; the statement is one of exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from orderproof.logic.terms import Term
from orderproof.theorems.facts.frame import EqualSizes, refined
from orderproof.theorems.facts.open_fact import Axes, NotCovered, dims_of, size_of


class Motion(Enum):
    """The effect of a permutation of the tokens on the indices of an axis."""

    STILL = "still"
    MOVED = "moved"
    FREE = "free"  # every element along the axis is the same


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its size, and whether it moves.

    An axis that moves may be longer than the tokens: `before` elements, then the tokens, then others. Only the indices
    of the tokens are permuted (an attention sink, a token in front).
    """

    size: Term
    motion: Motion
    before: int = 0


Dim = tuple[Axis, ...]  # empty for a dimension of size one


NOTHING: tuple[int, tuple[tuple[int, int], ...]] = (0, ())  # of memory was written


@dataclass(frozen=True, slots=True)
class MovedFact:
    """The fact about one tensor.

    Attributes:
        dims: The axes of each dimension.
        written: For memory of which only a part was written: a dimension, counted from the last, and the ranges
            [start, end) along it that were. Elsewhere it may hold anything.

    """

    dims: tuple[Dim, ...]
    written: tuple[int, tuple[tuple[int, int], ...]] | None = None

    @property
    def shape(self) -> tuple[Term, ...]:
        """The sizes of all dimensions."""
        return tuple(map(size, self.dims))

    @property
    def is_unmoved(self) -> bool:
        """True if no axis moves: both runs have the same tensor."""
        return all(axis.motion is not Motion.MOVED for dim in self.dims for axis in dim)

    def with_dim(self, place: int, *dims: Dim) -> MovedFact:
        """The fact with other dimensions in place of one."""
        return MovedFact((*self.dims[:place], *dims, *self.dims[place + 1 :]))

    def describe(self) -> str:
        """One line for a report."""
        names = [" x ".join(f"{axis.size} {axis.motion.value}" for axis in dim) or "1" for dim in self.dims]
        return f"[{', '.join(names)}]"


def uniform(shape: Iterable[Term], motion: Motion) -> MovedFact:
    """The fact about a tensor all of whose axes have the same motion."""
    return MovedFact(tuple(of_axes(axes, motion) for axes in dims_of(list(shape))))


def of_axes(axes: Axes, motion: Motion) -> Dim:
    """A dimension with axes of these sizes, all of the same motion."""
    return tuple(Axis(size, motion) for size in axes)


def sizes(dim: Dim) -> tuple[Term, ...]:
    """The sizes of the axes of a dimension."""
    return tuple(axis.size for axis in dim)


def size(dim: Dim) -> Term:
    """The size of a dimension."""
    return size_of(sizes(dim))


def split(dim: Dim, finer: Sequence[Term], equal: EqualSizes) -> Dim:
    """The axes taken apart into these sizes. Raises `NotCovered` if an axis that moves would be."""
    rest, found = list(finer), []
    for axis in dim:
        own: list[Term] = []
        while not own or not equal(size_of(tuple(own)), axis.size):
            if not rest:
                raise NotCovered("the axes of two dimensions do not fit each other")
            own.append(rest.pop(0))
        if len(own) > 1 and axis.motion is Motion.MOVED:
            raise NotCovered("the tokens are taken apart into groups by their index")
        found += [axis] if len(own) == 1 else [Axis(part, axis.motion) for part in own]
    if rest:
        raise NotCovered("the axes of two dimensions do not fit each other")
    return tuple(found)


def aligned(dims: Iterable[Dim], equal: EqualSizes) -> Dim:
    """The dimension over which several run together; those of size one are repeated.

    Raises `NotCovered` if tokens meet numbers that do not move with them: here order enters.
    """
    result: Dim = ()
    for dim in dims:
        if not result or not dim:
            result = result or dim
            continue
        common = refined(sizes(result), sizes(dim), equal)
        pairs = zip(split(result, common, equal), split(dim, common, equal), strict=True)
        result = tuple(_together(first, second) for first, second in pairs)
    return result


def _together(first: Axis, second: Axis) -> Axis:
    if (first.motion, first.before) == (second.motion, second.before) or second.motion is Motion.FREE:
        return first
    if first.motion is Motion.FREE:
        return second
    raise NotCovered("tokens meet numbers that are not the same for every token")


def still(dim: Dim, what: str) -> Dim:
    """A dimension in which the index of an element matters: none of its axes may move. Raises `NotCovered`."""
    if any(axis.motion is Motion.MOVED for axis in dim):
        raise NotCovered(what)
    return tuple(replace(axis, motion=Motion.STILL) for axis in dim)
