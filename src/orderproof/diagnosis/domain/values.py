"""Value ranges: an interval for the value of each element, in both runs.

A mask decides which elements an output depends on, so the analysis follows the values of constants, and of values
computed from them, as closed intervals [low, high] of extended reals. NaN is ordered above +inf, as `torch.sort` and
`torch.max` order it. The ends therefore say what an element may be:

    low == high     exactly this value (both ends NaN: exactly NaN)
    low == -inf     may be -inf
    high == +inf    may be +inf
    high is NaN     may be NaN or +inf

An *ordinary* number is a finite number as models compute them. That sums, products and quotients of ordinary numbers
are ordinary, and small compared with a mask, is an assumption about scores (`number_limits.py`). No number
bounds them, so the end that stands for them is a symbol: [-1, 1] is the interval of ordinary numbers, and the ends of
an interval that is not exact hold up to an ordinary number. With the unit as the symbol, the ends of a product show
whether a factor is as large as a mask: c [-1, 1] is ordinary if and only if |c| < L = ORDINARY_LIMIT.

Ends are not followed further than a mask needs it. `rounded` replaces every end between -L and L by the symbol, and
the ends of an element that may be larger than an ordinary number, or NaN, by -inf and NaN:

    [-1, 1]        an ordinary number
    [a, b]         masked if b is at most the masking threshold; certainly finite, since a is not -inf
    [-inf, b]      masked, or -inf
    [-inf, 1]      an ordinary number, or any lower one
    [-inf, NaN]    any number, or NaN
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from orderproof.number_limits import ORDINARY_LIMIT, masking_threshold

BoolArray = NDArray[np.bool_]
Ends = NDArray[Any]

VISIBLE_MARGIN: Final = 0.1  # share of the threshold: an entry above it is visible next to every masked one
LEAST: Final = float(np.finfo(np.float64).min)
EXACT_INTEGERS: Final = 2**53  # float64 holds every integer up to it


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """The interval of each element of a tensor. Both arrays have every dimension full or 1."""

    low: Ends
    high: Ends  # the same object as `low` if every element is exact

    @classmethod
    def of_constant(cls, array: NDArray[Any]) -> ValueRanges:
        """The ranges of a constant with these values. Of complex numbers only the magnitude is followed."""
        if array.dtype.kind == "c":
            return rounded(-np.abs(array), np.abs(array), torch.float64)
        if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
            huge = (array >= EXACT_INTEGERS) | (array <= -EXACT_INTEGERS)
            if huge.any():
                return cls(np.where(huge, -np.inf, array), np.where(huge, np.nan, array))
        return cls(array, array)

    @classmethod
    def ordinary(cls, rank: int) -> ValueRanges:
        """[-1, 1] for every element of a tensor of this rank."""
        return _filled(rank, -1.0, 1.0)

    @classmethod
    def unbounded(cls, rank: int) -> ValueRanges:
        """Any number or NaN for every element of a tensor of this rank."""
        return _filled(rank, -np.inf, np.nan)

    @property
    def exact(self) -> BoolArray:
        """Elements whose value is known exactly."""
        if self.low is self.high:
            return np.ones((1,) * self.low.ndim, dtype=bool)
        found: BoolArray = same_numbers(self.low, self.high)
        return found

    @property
    def is_ordinary(self) -> bool:
        """True if every element has the interval of ordinary numbers."""
        return self.low is not self.high and bool((self.low == -1).all() and (self.high == 1).all())

    def exactly(self, value: Any) -> BoolArray:
        """Elements that are exactly this number."""
        found: BoolArray = self.low == value
        return found if self.low is self.high else found & (self.high == value)

    def within(self, limit: float) -> BoolArray:
        """Elements with both ends between -limit and limit."""
        found: BoolArray = (self.low > -limit) & (self.high < limit)
        return found

    def map(self, rearrange: Callable[[Ends], Ends]) -> ValueRanges:
        """The ranges of a tensor whose elements are rearranged."""
        low = rearrange(self.low)
        return ValueRanges(low, low if self.low is self.high else rearrange(self.high))

    def with_exact(self, where: Any, value: Any) -> ValueRanges:
        """These ranges, and exactly `value` where the condition holds."""
        if not where.any():
            return self
        known = ValueRanges.of_constant(np.asarray(value))
        return ValueRanges(np.where(where, known.low, self.low), np.where(where, known.high, self.high))


@cache
def _filled(rank: int, low: float, high: float) -> ValueRanges:
    ends = np.full((1,) * rank, low), np.full((1,) * rank, high)
    for array in ends:
        array.flags.writeable = False
    return ValueRanges(*ends)


def same_numbers(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """Elements that are equal; NaN equals NaN."""
    same = a == b
    return same | ((a != a) & (b != b)) if a.dtype.kind in "fc" else same


def ordinary_limit(dtype: torch.dtype) -> float:
    """The size from which a number of this dtype does not count as ordinary next to a mask."""
    return VISIBLE_MARGIN * ORDINARY_LIMIT if dtype is torch.float16 else ORDINARY_LIMIT


def rounded(low: Ends, high: Ends, dtype: torch.dtype) -> ValueRanges:
    """The ranges of elements that are not exact, from computed ends: see the module's docstring.

    An end that is NaN (inf - inf, 0 inf) or too low for the dtype bounds nothing. An integer that is not ordinary may
    wrap around; a boolean is always ordinary.
    """
    limit = ordinary_limit(dtype)
    ordinary = (low > -limit) & (high < limit)
    if dtype is torch.bool or ordinary.all():
        return ValueRanges.ordinary(ordinary.ndim)
    if not dtype.is_floating_point:
        return ValueRanges(np.where(ordinary, -1.0, -np.inf), np.where(ordinary, 1.0, np.nan))
    anything = np.isnan(low) | ~(high < ORDINARY_LIMIT)
    info = torch.finfo(dtype)  # a number below its least one overflows from half a unit in the last place on
    overflows = low < info.min * (1 + info.eps / 4) - ORDINARY_LIMIT
    low = np.where(anything | overflows, -np.inf, np.where(low > -limit, -1.0, low))
    high = np.where(np.abs(high) < limit, 1.0, np.maximum(high, LEAST))
    # Equal ends would claim an exact value. The upper one decides what is masked.
    low = np.where((low == high) & (low > LEAST), np.nextafter(low, -np.inf), low)
    high = np.where(low == high, np.nextafter(high, np.inf), high)
    return ValueRanges(low, np.where(anything, np.nan, high))


def masking_elements(ranges: ValueRanges, dtype: torch.dtype) -> BoolArray:
    """Elements so negative that they vanish in a softmax with an ordinary entry."""
    masking: BoolArray = ranges.high <= -masking_threshold(dtype)
    return masking


class RowVisibility(NamedTuple):
    """Which entries of a row remain visible; a row runs along the reduced dimensions."""

    visible: BoolArray  # entries above every mask
    has_visible: BoolArray  # rows with a visible entry, and without one that may be +inf or NaN
    masked_out: BoolArray  # masked entries of such rows
    by_assumption: BoolArray  # those that need not be -inf
    may_be_nonfinite: BoolArray  # rows with an entry that is, or may be, +inf or NaN


def row_visibility(ranges: ValueRanges, dtype: torch.dtype, dims: int | tuple[int, ...]) -> RowVisibility:
    """Which rows along `dims` have a visible entry, and which of their entries are masked."""
    masked, below_infinity = masking_elements(ranges, dtype), ranges.high < np.inf
    # So far above every mask that the gap alone makes the masked entries vanish.
    visible = (ranges.low > -VISIBLE_MARGIN * masking_threshold(dtype)) & below_infinity
    may_be_nonfinite = np.any(~below_infinity, axis=dims, keepdims=True)
    has_visible = np.any(visible, axis=dims, keepdims=True) & ~may_be_nonfinite
    masked_out = masked & has_visible
    return RowVisibility(visible, has_visible, masked_out, masked_out & (ranges.high > -np.inf), may_be_nonfinite)


def may_be_masking_or_infinite(ranges: ValueRanges | None) -> bool:
    """True if some element may be as negative as a mask, or infinite; None means that every element is ordinary."""
    if ranges is None or (ranges.low is ranges.high and ranges.low.dtype.kind != "f"):
        return False
    return not ranges.within(ORDINARY_LIMIT).all()
