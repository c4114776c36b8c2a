"""Labelled products: the fact about a result whose elements combine its operands' elements as in einsum.

Along a label of the result, the operands move as the result does. A label that the result lacks is contracted: the
operands must move in the same way along it. Along a label that is read by position, nothing may move.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from orderproof.recheck.algebra import FactAlgebra, to_numpy
from orderproof.recheck.fact import (
    DIMENSION_LABELS,
    IDENTITY,
    INDEPENDENT,
    INF,
    ORDINARY_LIMIT,
    TOP,
    UNIFORM,
    Array,
    BoolArray,
    Fact,
    Move,
)
from orderproof.recheck.reading import DTYPES, MAX_ARRAY_ELEMENTS, require

Bounds: TypeAlias = Literal[
    "exact",  # of elements whose operands are all known exactly
    "monotone",  # in each operand: the bounds are found at the corners
    "quotient",  # monotone, but rounds where "monotone" is exact
    "boolean",  # monotone in the truth of each operand
    "select",  # the first operand chooses between the other two
]
Range: TypeAlias = tuple[Array, Array]  # low and high


@dataclass(frozen=True)
class Combination:
    """An operation on single elements, and how its bounds follow from those of its operands."""

    evaluate: Callable[..., Tensor]
    bounds: Bounds


def labelled_fact(
    algebra: FactAlgebra,
    out: Fact,
    operands: Sequence[tuple[Fact, str]],
    result: str,
    by_position: str = "",
    combination: Combination | None = None,
) -> Fact:
    """The fact about a result with labels `result`, of operands with their labels; `out` gives its shape and dtype.

    Without a combination, elements of ordinary operands are ordinary and all others may be anything.
    Raises `CertificateError` if operands differ in size along a label.
    """
    labels = list(dict.fromkeys(result + "".join(own for _, own in operands)))
    sizes, moves = _sizes_and_moves(out, operands, result)
    moved_by_position = any(not isinstance(moves.get(x, IDENTITY), str) for x in by_position)
    moves |= dict.fromkeys(by_position, IDENTITY)

    def aligned(array: Array, own: str) -> Array:
        """An operand's array with one dimension for each of `labels`."""
        array = array.reshape(array.shape + (1,) * (len(labels) - array.ndim))
        return np.moveaxis(array, range(len(own)), [labels.index(x) for x in own])

    dependences = [
        aligned(algebra.dependence_under(f, [moves.get(x, IDENTITY) for x in own]), own) for f, own in operands
    ]
    ordinary = reduce(np.logical_and, [aligned(f.is_ordinary, own) for f, own in operands])
    high: Array = np.where(ordinary, 1, INF)
    low: Array = -high
    ranges = [(aligned(f.low, own), aligned(f.high, own)) if f.shape else (f.low, f.high) for f, own in operands]
    if combination is not None:
        size = math.prod(np.broadcast_shapes(*(bound.shape for pair in ranges for bound in pair)))
        if size <= MAX_ARRAY_ELEMENTS:
            dtypes = [f.dtype for f, _ in operands]
            low, high = _combined_range(algebra, combination, dtypes, out.dtype, ranges, (low, high))
        if combination.bounds == "select":
            condition_low, condition_high = ranges[0]
            dependences[1] = np.where(condition_high <= 0, INDEPENDENT, dependences[1])
            dependences[2] = np.where(condition_low > 0, INDEPENDENT, dependences[2])

    product = replace(
        out,
        shape=tuple(sizes.get(x, 1) for x in labels),
        moves=tuple(moves.get(x, IDENTITY) for x in labels),
    )
    start: Array = np.array(TOP if moved_by_position else INDEPENDENT)
    product = algebra.derived(product, reduce(np.maximum, dependences, start), low, high)
    return _contracted(algebra, out, product)


def _sizes_and_moves(
    out: Fact, operands: Sequence[tuple[Fact, str]], result: str
) -> tuple[dict[str, int], dict[str, Move]]:
    """The size of each label, and how it moves: by an operand's permutation, or as its last operand that says so."""
    sizes = {x: size for x, size in zip(result, out.shape, strict=True) if size > 1}
    moves: dict[str, Move] = {}
    for f, own in operands:
        for x, size, move in zip(own, f.shape, f.moves, strict=True):
            if size == 1:
                continue
            require(sizes.setdefault(x, size) == size, "its operands differ in size")
            if moves.get(x, UNIFORM) == UNIFORM or not isinstance(move, str):
                moves[x] = move
    return sizes, moves


def _contracted(algebra: FactAlgebra, out: Fact, product: Fact) -> Fact:
    """The sum of a product over the labels that the result lacks; a sum of exact zeros is zero."""
    rank = len(out.shape)
    over = tuple(k for k, size in enumerate(product.shape) if k >= rank or (out.shape[k] == 1 < size))
    dependence = product.dependence.max(axis=over, keepdims=True, initial=INDEPENDENT)
    low, high = product.low, product.high
    if any(product.shape[k] > 1 for k in over):
        zero = ((low == 0) & (high == 0)).all(axis=over, keepdims=True)
        ordinary = product.is_ordinary.all(axis=over, keepdims=True)
        high = np.where(zero, 0, np.where(ordinary, 1, INF))
        low = -high
    dependence, low, high = (x.reshape(x.shape[:rank]) for x in (dependence, low, high))
    return algebra.derived(replace(out, moves=product.moves[:rank]), dependence, low, high)


def _combined_range(
    algebra: FactAlgebra,
    combination: Combination,
    dtypes: Sequence[str],
    dtype: str,
    ranges: Sequence[Range],
    default: Range,
) -> Range:
    """The bounds of an elementwise combination of operands with these dtypes and bounds."""
    low, high = default
    bounds = combination.bounds
    boolean = bounds == "select" or (bounds == "boolean" and dtype == "bool") or {*dtypes, dtype} == {"bool"}
    if boolean or (bounds in ("monotone", "quotient") and "float" in dtype):  # integers wrap around
        low, high = _range_at_corners(combination, dtypes, ranges)
        if bounds == "quotient" and len(ranges) == 2:  # monotone on each side of zero only
            least, greatest = ranges[1]
            may_be_zero = (least <= 0) & (greatest >= 0) & ((least <= -ORDINARY_LIMIT) | (greatest >= ORDINARY_LIMIT))
            low, high = np.where(may_be_zero, -INF, low), np.where(may_be_zero, INF, high)
        masked = reduce(np.logical_or, [(a < b) & (b <= -ORDINARY_LIMIT) for a, b in ranges])
        exact_result = boolean | (((low == 0) | np.isinf(low)) & (bounds == "monotone"))
        # 1e30 + x is 1e30 by rounding alone: equal corners prove nothing about the value.
        rounded = (low == high) & ~(exact_result & (algebra.finite_scores_assumed | ~masked))
        low = np.where(rounded, np.nextafter(low, -INF), low)
        high = np.where(rounded, np.nextafter(high, INF), high)
        if bounds == "quotient" and len(ranges) == 2:  # an ordinary divisor is not zero
            (first, last), (least, greatest) = ranges
            zero = (first == 0) & (last == 0) & (least > -ORDINARY_LIMIT) & (greatest < ORDINARY_LIMIT)
            low, high = np.where(zero, 0, low), np.where(zero, 0, high)
    exact: BoolArray = reduce(np.logical_and, [a == b for a, b in ranges])
    if exact.any():
        operands = [torch.from_numpy(np.array(a)).to(DTYPES[x]) for (a, _), x in zip(ranges, dtypes, strict=True)]
        value = to_numpy(combination.evaluate(*operands))
        low, high = np.where(exact, value, low), np.where(exact, value, high)
    return low, high


def _range_at_corners(combination: Combination, dtypes: Sequence[str], ranges: Sequence[Range]) -> Range:
    """The least and the greatest value at the corners of the operands' bounds."""
    corners = []
    for dtype, (a, b) in zip(dtypes, ranges, strict=True):
        if dtype == "bool" or combination.bounds == "boolean":
            pair: Range = (np.where(a == b, a, 0) != 0, np.where(a == b, b, 1) != 0)
        else:
            pair = (a.astype(float), b.astype(float))
        corners.append([torch.from_numpy(np.array(x)) for x in pair])
    results = [combination.evaluate(*corner).double().numpy() for corner in itertools.product(*corners)]
    return reduce(np.minimum, results), reduce(np.maximum, results)


def elementwise_fact(
    algebra: FactAlgebra, out: Fact, combination: Combination, *operands: Fact | float | Tensor
) -> Fact:
    """The fact about an elementwise combination of operands, aligned from the right; a number is a constant.

    Raises `CertificateError` if an operand is larger than the result.
    """
    facts = [
        f if isinstance(f, Fact) else algebra.constant((), out.dtype, torch.as_tensor(f, dtype=DTYPES[out.dtype]))
        for f in operands
    ]
    for f in facts:
        pairs = zip(reversed(f.shape), reversed(out.shape), strict=False)
        require(all(size in (1, target) for size, target in pairs), "an operand is larger than the result")
    labels = DIMENSION_LABELS[: len(out.shape)]
    parts = [(f, labels[len(labels) - len(f.shape) :]) for f in facts]
    return labelled_fact(algebra, out, parts, labels, combination=combination)
