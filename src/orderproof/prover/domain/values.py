"""Value ranges: what is known of each element's value in both runs.

A mask decides which elements an output depends on, so the analysis follows the values of constants, and of values
computed from them, as one of five ranges for each element:

    ORDINARY           (-L, L)         a finite number as models compute them, L = ORDINARY_LIMIT
    EXACT              [v, v]          exactly the value v, which may be infinite or NaN
    MASKING            [-inf, b]       so negative that a softmax next to an ordinary entry makes it exactly zero
    AT_MOST_ORDINARY   [-inf, L)       ordinary or as negative as a mask; the data decide which. Never +inf or NaN
    UNBOUNDED          [-inf, inf]     any number, or NaN

ORDINARY rests on an assumption about scores (`FINITE_SCORES_ASSUMPTION`): sums and products of ordinary numbers are
again ordinary. L is therefore a symbol in the arithmetic of `value_transfer.py`, and a number only where constants are
compared with it; the ends of the ranges are not computed with.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]

MASKING_THRESHOLD: Final = 1e8  # float32: an entry this negative masks, under the assumption on the scores
ORDINARY_LIMIT: Final = 6e4  # float16 has nothing larger than 65504
VISIBLE_MARGIN: Final = 0.1  # share of the threshold: an entry above it is visible next to every masked one
FINITE_SCORES_ASSUMPTION = (
    "scores of visible and of hidden tokens are finite and small compared with the masking value "
    "(finite mask, not -inf)"
)


class RangeKind(IntEnum):
    """The range of one element; the numbers are those of a certificate."""

    ORDINARY = 0
    EXACT = 1
    MASKING = 2
    UNBOUNDED = 3
    AT_MOST_ORDINARY = 4


@dataclass(frozen=True, slots=True)
class ValueRanges:
    """The range of each element of a tensor. Both arrays have every dimension full or 1.

    `value` is the value of an EXACT element and the upper bound of a MASKING one; elsewhere it has no meaning.
    """

    kind: NDArray[np.uint8]  # of RangeKind
    value: NDArray[Any]

    @classmethod
    def of_constant(cls, array: NDArray[Any]) -> ValueRanges:
        """The ranges of a constant with these values."""
        return cls(np.full((1,) * array.ndim, RangeKind.EXACT, dtype=np.uint8), array)

    @classmethod
    def filled(cls, rank: int, kind: RangeKind) -> ValueRanges:
        """One range for every element of a tensor of this rank."""
        return cls(np.full((1,) * rank, kind, dtype=np.uint8), np.zeros((1,) * rank))

    @property
    def ordinary(self) -> BoolArray:
        """Elements of the range ORDINARY."""
        return self._of(RangeKind.ORDINARY)

    @property
    def exact(self) -> BoolArray:
        """Elements of the range EXACT."""
        return self._of(RangeKind.EXACT)

    @property
    def masking(self) -> BoolArray:
        """Elements of the range MASKING; `masking_elements` adds the exact values that mask."""
        return self._of(RangeKind.MASKING)

    @property
    def unbounded(self) -> BoolArray:
        """Elements of the range UNBOUNDED."""
        return self._of(RangeKind.UNBOUNDED)

    @property
    def at_most_ordinary(self) -> BoolArray:
        """Elements of the range AT_MOST_ORDINARY."""
        return self._of(RangeKind.AT_MOST_ORDINARY)

    @property
    def open_below(self) -> BoolArray:
        """Elements that are not exact and may be as negative as a mask, or infinite."""
        return ~(self.exact | self.ordinary)

    def _of(self, kind: RangeKind) -> BoolArray:
        found: BoolArray = self.kind == kind
        return found


def masking_elements(ranges: ValueRanges, dtype: torch.dtype, *, share: float = 1.0) -> BoolArray:
    """Elements so negative (by a share of the threshold) that they vanish in a softmax with an ordinary entry."""
    if ranges.value.dtype.kind != "f":
        return ranges.masking
    masking: BoolArray = ranges.masking | (ranges.exact & (ranges.value <= -share * masking_threshold(dtype)))
    return masking


def masking_threshold(dtype: torch.dtype) -> float:
    """The size from which a negative number of this dtype masks."""
    return ORDINARY_LIMIT if dtype is torch.float16 else MASKING_THRESHOLD


class RowVisibility(NamedTuple):
    """Which entries of a row remain visible; a row runs along the reduced dimensions."""

    visible: BoolArray  # entries above every mask
    has_visible: BoolArray  # rows with a visible entry, and without one that may be +inf or NaN
    masked_out: BoolArray  # masked entries of such rows
    finite: BoolArray  # entries that are not known to be infinite or NaN
    may_be_nonfinite: BoolArray  # rows with an entry that is, or may be, +inf or NaN


def row_visibility(ranges: ValueRanges, dtype: torch.dtype, dims: int | tuple[int, ...]) -> RowVisibility:
    """Which rows along `dims` have a visible entry, and which of their entries are masked."""
    masked = masking_elements(ranges, dtype)
    finite = ~ranges.exact | np.isfinite(ranges.value.astype(np.float64))
    # So far above every mask that the gap alone makes the masked entries vanish.
    visible = ranges.ordinary | (ranges.exact & finite & ~masking_elements(ranges, dtype, share=VISIBLE_MARGIN))
    infinite = ranges.exact & ~finite & ~(ranges.value == -np.inf)
    nonfinite = (infinite | ranges.unbounded).any(axis=dims, keepdims=True)
    has_visible = visible.any(axis=dims, keepdims=True) & ~nonfinite
    return RowVisibility(visible, has_visible, masked & has_visible, finite, nonfinite)


def out_of_ordinary_range(ranges: ValueRanges, dtype: torch.dtype) -> BoolArray:
    """Exact elements that are too large to count as ordinary next to a mask, infinite or NaN."""
    limit = VISIBLE_MARGIN * ORDINARY_LIMIT if dtype is torch.float16 else ORDINARY_LIMIT
    value = ranges.value.astype(np.float64)
    return ranges.exact & ~(np.abs(value) < limit)


def at_most_ordinary_elements(ranges: ValueRanges) -> BoolArray:
    """Elements that are ordinary or as negative as a mask: not large, not +inf and not NaN."""
    inexact = ranges.ordinary | ranges.masking | ranges.at_most_ordinary
    if ranges.value.dtype.kind != "f":
        return inexact | ranges.exact
    return inexact | (ranges.exact & (ranges.value < ORDINARY_LIMIT))


def nonfinite_elements(ranges: ValueRanges) -> BoolArray:
    """Exact elements that are infinite or NaN."""
    return ranges.exact & ~np.isfinite(ranges.value.astype(np.float64))


def may_be_masking_or_infinite(ranges: ValueRanges | None) -> bool:
    """True if some element may be as negative as a mask, or infinite; None means that every element is ordinary."""
    if ranges is None:
        return False
    huge = ranges.exact & ~(np.abs(ranges.value) < ORDINARY_LIMIT) if ranges.value.dtype.kind == "f" else False
    return bool(ranges.open_below.any() or np.any(huge))
