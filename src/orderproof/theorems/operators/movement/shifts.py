"""Elements at other indices: in reverse, around a dimension, on a diagonal, in windows.

Lemma. Each element is the one of the operand at an index that its own index gives.
  1. It agrees in both runs where that element does.
  2. Dimensions whose index stays keep their motion; moved along a shifted one, nothing follows. Moved along both
     dimensions of a diagonal by the same permutation, the diagonal moves.

Machine-checked (proofs/rules/movement_lemma.v): fact_moved, movement_equivariant.
Machine-checked (proofs/symbolic/moved_axes.v): moved_diagonal, diagonal_of_one_moved_axis.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from typing import Any

from orderproof.logic.terms import FALSE, Term, as_term, at_most, less, negation, remainder
from orderproof.theorems.facts.moved_fact import Motion, MovedFact, aligned, size, still, uniform
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, dims_of, index, size_of
from orderproof.theorems.facts.piecewise import piecewise
from orderproof.theorems.facts.reindexing import index_along, reindexed, with_dims, with_single_axis
from orderproof.theorems.operators.movement.parts import TAKEN_BY_INDEX
from orderproof.theorems.walks.moved_operation import MovedOperation
from orderproof.theorems.walks.open_operation import OpenOperation
from orderproof.theorems.walks.operation import Operation, number
from orderproof.theorems.walks.operator_rules import operators

FLIP = operators("flip")


@FLIP.open
def flip(call: OpenOperation) -> OpenFact:
    """Dimensions in reverse."""
    fact = call.operand
    for one in call.argument(1, "dims"):
        dim = int(one) % len(fact.dims)
        fact = with_single_axis(fact, dim)
        size = size_of(fact.dims[dim])
        fact = reindexed(fact, dim, size, size - 1 - index_along(fact, dim, size))
    return fact


ROLL = operators("roll")


@ROLL.open
def roll(call: OpenOperation) -> OpenFact:
    """Elements shifted around a dimension."""
    shifts, dims = call.argument(1, "shifts"), call.argument(2, "dims", [])
    shifts, dims = ([x] if isinstance(x, int) else list(x) for x in (shifts, dims))
    fact = call.operand
    if not dims and len(fact.dims) == 1:  # all dimensions
        dims = [0]
    if not dims:
        raise NotCovered("a roll over all dimensions")
    for shift, one in zip(shifts, dims, strict=True):
        dim = int(one) % len(fact.dims)
        fact = with_single_axis(fact, dim)
        size = size_of(fact.dims[dim])
        if not isinstance(shift, int):
            raise NotCovered("a shift is not known")
        at = index_along(fact, dim, size)
        if size.is_constant:
            fact = reindexed(fact, dim, size, remainder(at - shift, size.constant))
            continue
        wrapped = less(at, shift) if shift >= 0 else at_most(size + shift, at)
        if not call.context.proves(at_most(abs(shift), size), ()):
            fact = _of_any_index(call, fact, dim)
            continue
        around = reindexed(fact, dim, size, at - shift + (size if shift >= 0 else -size))
        fact = piecewise([(wrapped, around), (negation(wrapped), reindexed(fact, dim, size, at - shift))], fact.dtype)
    return fact


def _of_any_index(call: OpenOperation, fact: OpenFact, dim: int) -> OpenFact:
    """The fact about a tensor whose elements come from any index of a dimension of the operand."""
    axis, sizes = fact.first_axis(dim), (*fact.sizes, *fact.dims[dim])
    bound = len(fact.sizes)
    other = fact.at(fact.dims, [index(bound) if k == axis else index(k) for k in range(bound)])
    ranges = other.ranges()
    loose = ranges.hidden | ranges.unbounded
    unbounded = FALSE if loose is FALSE else ~call.context.for_all(~loose, sizes, bound)
    return OpenFact(fact.dims, fact.dtype, call.context.for_all(other.same, sizes, bound), unbounded=unbounded)


@FLIP.moved
@ROLL.moved
def moved_shift(call: MovedOperation) -> MovedFact:
    """Elements at other indices of some dimensions."""
    given = call.argument(1 if call.name == "flip" else 2, "dims", [])
    chosen = [given] if isinstance(given, int) else list(given) or range(call.rank)
    fact = call.operand
    for d in chosen:
        fact = fact.with_dim(int(d) % call.rank, still(fact.dims[int(d)], TAKEN_BY_INDEX))
    return fact


DIAGONAL = operators("diagonal")


def _diagonal_of(call: Operation[Any]) -> tuple[int, int, int]:
    """The offset of a diagonal and its two dimensions."""
    offset, first, second = (
        int(call.argument(k, n, d)) for k, n, d in ((1, "offset", 0), (2, "dim1", 0), (3, "dim2", 1))
    )
    return offset, first % call.rank, second % call.rank


@DIAGONAL.open
def diagonal(call: OpenOperation) -> OpenFact:
    """The diagonal of two dimensions, as the last dimension."""
    fact = call.operand
    rank = len(fact.dims)
    offset, first, second = _diagonal_of(call)
    fact = with_single_axis(with_single_axis(fact, first), second)
    kept = [d for d in range(rank) if d not in (first, second)]
    dims = [*(fact.dims[d] for d in kept), *dims_of(call.shape[-1:])]
    places, place = {}, 0
    for d in kept:
        places[d], place = place, place + len(fact.dims[d])
    at = index(place) if dims[-1] else as_term(0)
    terms: list[Term] = []
    for d, axes in enumerate(fact.dims):
        if d in places:
            terms += [index(places[d] + k) for k in range(len(axes))]
        elif axes:
            terms.append(at + max(0, -offset if d == first else offset))
    return fact.at(dims, terms)


@DIAGONAL.moved
def moved_diagonal(call: MovedOperation) -> MovedFact:
    """The diagonal of two dimensions that move in the same way."""
    fact, (offset, first, second) = call.operand, _diagonal_of(call)
    pair = [fact.dims[first], fact.dims[second]]
    if offset or not call.context.equal_sizes(size(pair[0]), size(pair[1])):
        for dim in pair:
            still(dim, TAKEN_BY_INDEX)
        last = uniform(call.shape[-1:], Motion.STILL).dims[0]
    else:
        last = aligned(pair, call.context.equal_sizes)
    return MovedFact((*(dim for d, dim in enumerate(fact.dims) if d not in (first, second)), last))


UNFOLD = operators("unfold")


@UNFOLD.open
def unfold(call: OpenOperation) -> OpenFact:
    """Windows of a dimension, as a new last dimension."""
    dim, width, step = call.dim(1, "dimension"), number(call.argument(2, "size")), call.argument(3, "step")
    fact = with_single_axis(call.operand, dim)
    if not isinstance(step, int) or width is None:
        raise NotCovered("windows of an unknown width")
    own, window = dims_of([call.shape[dim], width])
    dims = [*fact.dims[:dim], own, *fact.dims[dim + 1 :], window]
    last = index(sum(map(len, dims)) - 1) if window else as_term(0)

    def at(place: int) -> list[Term]:
        return [(index(place) if own else as_term(0)) * step + last] if fact.dims[dim] else []

    return with_dims(fact, dims, {dim: at})
