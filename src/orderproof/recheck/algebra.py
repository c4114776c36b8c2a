"""Facts that follow from facts under a group of permutations; the base of every check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from orderproof.recheck.fact import (
    IDENTITY,
    INDEPENDENT,
    INF,
    TOP,
    UNIFORM,
    Array,
    BoolArray,
    Fact,
    Move,
    Permutation,
    drop_constant_axes,
)
from orderproof.recheck.reading import DTYPES, require


@dataclass(frozen=True)
class FactAlgebra:
    """Consequences of facts, for one group and some assumptions."""

    group: tuple[Permutation, ...]  # the generators; empty for an independence law
    finite_scores_assumed: bool  # scores of visible tokens are small compared with a finite mask
    exact_transforms_assumed: bool = False  # Fourier transforms do not round

    def pull_back(self, array: Array, moves: Sequence[Move], generator: int) -> Array:
        """The array read at the position that each element moves to: result[e] = array[move(e)]."""
        for d, move in enumerate(moves):
            if not isinstance(move, str) and array.shape[d] > 1:
                array = array.take(move[generator], d)
        return array

    def holds_at_images(self, mask: BoolArray, moves: Sequence[Move]) -> BoolArray:
        """Elements in the mask whose image under every generator is in the mask too."""
        images = [self.pull_back(mask, moves, g) for g in range(len(self.group))]
        return reduce(np.logical_and, images, mask)

    def is_invariant(self, fact: Fact, moves: Sequence[Move]) -> BoolArray:
        """Elements whose value is known exactly, and equal at the image under every generator."""
        equal = [
            self.pull_back(bound, moves, g) == bound for g in range(len(self.group)) for bound in (fact.low, fact.high)
        ]
        return reduce(np.logical_and, equal, fact.low == fact.high)

    def dependence_under(self, fact: Fact, moves: Sequence[Move]) -> Array:
        """The dependence of a fact whose tensor is claimed to move by `moves`.

        It is the fact's own if the tensor does move so. Otherwise only invariant elements are independent.
        """
        pairs = [(own, claimed) for size, own, claimed in zip(fact.shape, fact.moves, moves, strict=True) if size > 1]
        uniform = all(own == UNIFORM for own, claimed in pairs if claimed == UNIFORM)
        require(uniform, "it is claimed to be uniform along a dimension where it need not be")
        if all(own in (claimed, UNIFORM) for own, claimed in pairs):
            return fact.dependence
        return np.where(self.is_invariant(fact, moves), INDEPENDENT, TOP)

    def derived(self, like: Fact, dependence: Array | int, low: Array | float = -1, high: Array | float = 1) -> Fact:
        """The fact with the shape, dtype and moves of `like`. Elements that are known and invariant are independent.

        The default bounds are those of ordinary numbers. NaN as a bound allows any value.
        """
        may_be_nan = np.isnan(low) | np.isnan(high)
        low, high = np.where(may_be_nan, -INF, low), np.where(may_be_nan, INF, high)
        if like.dtype == "bool":
            low, high = np.maximum(low, 0), np.minimum(high, 1)
        dependence, low, high = (
            np.asarray(x) if np.ndim(x) else np.full((1,) * len(like.shape), x) for x in (dependence, low, high)
        )
        result = Fact(like.shape, like.dtype, like.moves, dependence, low, high)
        return replace(
            result, dependence=np.where(self.is_invariant(result, result.moves), INDEPENDENT, result.dependence)
        )

    def constant(self, shape: tuple[int, ...], dtype: str, value: Tensor | None = None) -> Fact:
        """The fact of a tensor that is equal in both runs; its bounds and uniform dimensions are those of its value."""
        moves: tuple[Move, ...] = (IDENTITY,) * len(shape)
        empty = np.zeros(0)
        result = replace(self.derived(Fact(shape, dtype, moves, empty, empty, empty), INDEPENDENT), is_constant=True)
        if value is None:
            return result
        value = value.to(DTYPES[dtype]).expand(shape)
        numbers = drop_constant_axes(to_numpy(value))
        moves = tuple(UNIFORM if n == 1 < size else IDENTITY for n, size in zip(numbers.shape, shape, strict=True))
        return replace(result, moves=moves, low=numbers, high=numbers, constant_value=value)


def to_numpy(tensor: Tensor) -> Array:
    """A tensor's values; bfloat16, which NumPy lacks, as float64."""
    values: Array = (tensor.double() if tensor.dtype is torch.bfloat16 else tensor).numpy()
    return values
