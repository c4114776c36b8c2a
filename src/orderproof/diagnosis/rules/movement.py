"""Operators that only move elements are determined by where each element came from.

Lemma (movement_equivariant). Let C[o] = A[s(o)] for a fixed map s of indices. If A'[m(e)] = A[e], and r is
a permutation of the indices of C with s(r(o)) = m(s(o)), then C'[r(o)] = C[o].
If no product of one permutation for each dimension satisfies that, C is not determined: of A = [1, 2, 3]
with its ends exchanged, C = A[0:2] becomes [3, 2], which is not a permutation of [1, 2].
Proof. C'[r(o)] = A'[s(r(o))] = A'[m(s(o))] = A[s(o)] = C[o]. Arithmetic: none; exact.

Three forms, each applied without enumerating dimensions that are not permuted: dimensions permuted (transpose,
permute, squeeze, unsqueeze, expand) and reshaped (view, reshape, flatten), here, and one dimension reindexed (slice,
select, flip, cat, index by a constant), in reindexing.py.
Machine-checked (proofs/rules/movement_lemma.v): movement_equivariant, movement_not_determined, fact_moved.
Not machine-checked: that torch's view, transpose and the others read the index that the rule computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orderproof.diagnosis.domain.fact import (
    NEVER,
    Fact,
    Shape,
    compress,
    constant_dependence,
    generator_count,
    with_ranges_widened,
)
from orderproof.diagnosis.domain.move import FREE, STILL, Move, is_permuted, permuted_axis
from orderproof.diagnosis.operands import with_constant_values
from orderproof.diagnosis.rule import OperatorCall, RuleNotApplicable, rule

Array = NDArray[Any]
LEMMA = "movement_equivariant"


def permute_dims(fact: Fact, shape: Shape, source: Sequence[int | None]) -> Fact:
    """Dimensions permuted: result dimension k is operand dimension source[k], or a new one of size 1 (None)."""

    def push(array: Array) -> Array:
        kept = [d for d in source if d is not None]
        dropped = tuple(d for d in range(array.ndim) if d not in kept)
        array = array.reshape([s for d, s in enumerate(array.shape) if d not in dropped]) if dropped else array
        rank = {d: k for k, d in enumerate(sorted(kept))}
        array = array.transpose([rank[d] for d in kept])
        sizes = iter(array.shape)
        return array.reshape([1 if d is None else next(sizes) for d in source])

    moves = tuple(STILL if d is None else fact.moves[d] for d in source)
    return _transform_fact(fact, shape, moves, push)


def _transform_fact(fact: Fact, shape: Shape, moves: tuple[Move, ...], push: Callable[[Array], Array]) -> Fact:
    ranges = fact.ranges
    if ranges is not None:
        ranges = ranges.map(push)
    return Fact(shape, moves, push(fact.dependence), ranges)


@rule(LEMMA, "transpose", "t", "numpy_T", "permute", "movedim", "swapaxes")
def transpose(call: OperatorCall) -> Fact:
    """Dimensions in another order."""
    fact = call.fact(call.args[0])
    rank = len(fact.shape)
    order = list(range(rank))
    name = call.target.split(".")[1]
    if name == "permute":
        order = [d % rank for d in call.argument(1, "dims")]
    elif name in ("t", "numpy_T"):
        order.reverse()
    elif name == "movedim":
        source, destination = ([x] if isinstance(x, int) else list(x) for x in call.args[1:3])
        rest = [d for d in order if d not in [x % rank for x in source]]
        order = [-1] * rank
        for old, new in zip(source, destination, strict=True):
            order[new % rank] = old % rank
        order = [rest.pop(0) if d < 0 else d for d in order]
    else:
        i, j = call.args[1] % rank, call.args[2] % rank
        order[i], order[j] = order[j], order[i]
    return permute_dims(fact, call.shape, order)


@rule(LEMMA, "unsqueeze")
def unsqueeze(call: OperatorCall) -> Fact:
    """A new dimension of size 1."""
    fact = call.fact(call.args[0])
    position = call.args[1] % (len(fact.shape) + 1)
    source: list[int | None] = list(range(len(fact.shape)))
    source.insert(position, None)
    return permute_dims(fact, call.shape, source)


@rule(LEMMA, "squeeze")
def squeeze(call: OperatorCall) -> Fact:
    """Dimensions of size 1 removed."""
    fact = call.fact(call.args[0])
    rank = len(fact.shape)
    dims = call.args[1] if len(call.args) > 1 else list(range(rank))
    chosen = {d % rank for d in ([dims] if isinstance(dims, int) else dims)}
    return permute_dims(fact, call.shape, [d for d in range(rank) if not (d in chosen and fact.shape[d] == 1)])


@rule(LEMMA, "expand", "expand_as", "broadcast_to", "_unsafe_expand", "copy")
def expand(call: OperatorCall) -> Fact:
    """A dimension of size 1 repeated: the result is uniform along it."""
    # `copy` overwrites its first argument by the second.
    fact = with_constant_values(call, call.args[1 if ".copy." in call.target else 0])
    added = len(call.shape) - len(fact.shape)
    source: list[int | None] = [None] * added + list(range(len(fact.shape)))
    result = permute_dims(fact, tuple(1 if d is None else fact.shape[d] for d in source), source)
    moves = tuple(
        FREE if result.shape[d] == 1 and call.shape[d] > 1 else result.moves[d] for d in range(len(call.shape))
    )
    return Fact(call.shape, moves, result.dependence, result.ranges)


@rule(LEMMA, "view", "_unsafe_view", "reshape", "flatten", "unflatten", "view_as", "reshape_as", "ravel")
def view(call: OperatorCall) -> Fact:
    """Dimensions reshaped, group by group."""
    return reshape_fact(with_constant_values(call, call.args[0]), call.shape)


@rule(LEMMA, "view.dtype")
def view_dtype(call: OperatorCall) -> Fact:
    """The same bits read as another dtype of the same width: elementwise, and no value is known."""
    fact = call.fact(call.args[0])
    if fact.shape != call.shape:
        raise RuleNotApplicable("bits read as elements of another width have no lemma")
    return with_ranges_widened(Fact(fact.shape, fact.moves, fact.dependence))  # the bits may be those of infinity


def reshape_fact(fact: Fact, shape: Shape) -> Fact:
    """The fact about a tensor viewed in another shape."""
    if math.prod(fact.shape) == 0:
        return Fact(shape, (STILL,) * len(shape), constant_dependence(len(shape), NEVER))
    groups = list(_reshape_groups(fact.shape, shape))
    moves: list[Move] = []
    for before, after in groups:
        moves.extend(_reshaped_moves([fact.moves[d] for d in before], [fact.shape[d] for d in before], after, shape))

    def push(array: Array) -> Array:
        if array.size == 1:
            return array.reshape((1,) * len(shape))
        inner: list[int] = []
        outer: list[int] = []
        for before, after in groups:
            varies = any(array.shape[d] > 1 for d in before)
            inner.extend(fact.shape[d] if varies else 1 for d in before)
            outer.extend(shape[d] if varies else 1 for d in after)
        return compress(np.broadcast_to(array, inner).reshape(outer))

    return _transform_fact(fact, shape, tuple(moves), push)


def _reshape_groups(before: Shape, after: Shape) -> Any:
    """Split two shapes of one size into the smallest consecutive groups with equal products."""
    i = j = 0
    while i < len(before) or j < len(after):
        left: list[int] = []
        right: list[int] = []
        p = q = 1
        while True:
            if p == q and (left or right):
                break
            if (p <= q and i < len(before)) or j >= len(after):
                left.append(i)
                p *= before[i]
                i += 1
            else:
                right.append(j)
                q *= after[j]
                j += 1
        while i < len(before) and before[i] == 1 and j >= len(after):
            left.append(i)
            i += 1
        while j < len(after) and after[j] == 1 and i >= len(before):
            right.append(j)
            j += 1
        yield left, right


def _reshaped_moves(moves: list[Move], sizes: list[int], after: list[int], shape: Shape) -> list[Move]:
    real = [(m, s) for m, s in zip(moves, sizes, strict=True) if s > 1]
    if all(m is FREE for m, _ in real):
        return [FREE if shape[d] > 1 else STILL for d in after]
    if not any(is_permuted(m) for m, _ in real):
        return [STILL for _ in after]
    targets = [d for d in after if shape[d] > 1]
    if len(real) == 1 and len(targets) == 1:
        return [real[0][0] if shape[d] > 1 else STILL for d in after]
    count = generator_count(tuple(m for m, _ in real))
    rows: dict[int, list[Array]] = {d: [] for d in targets}
    for g in range(count):
        grid = np.ravel_multi_index(np.ix_(*[m.indices(g, s) for m, s in real]), [s for _, s in real]).reshape(
            [shape[d] for d in targets]
        )
        for k, (d, part) in enumerate(zip(targets, np.unravel_index(grid, grid.shape), strict=True)):
            row = part[tuple(slice(None) if x == k else 0 for x in range(grid.ndim))]
            if not (part == row.reshape([-1 if x == k else 1 for x in range(grid.ndim)])).all():
                raise RuleNotApplicable(
                    f"the moved dimension is split across {[shape[x] for x in targets]}, and no product of one "
                    "permutation for each of these gives the same permutation"
                )
            rows[d].append(row)
    return [permuted_axis(np.stack(rows[d])) if d in rows else STILL for d in after]
