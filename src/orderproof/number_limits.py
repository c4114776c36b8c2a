"""Which numbers of a model are ordinary and which act as a mask, and what a proof assumes of them.

An ordinary number is finite and small next to a mask. That sums, products and quotients of ordinary numbers are
ordinary is an assumption about scores.

A mask of -10000 hides smaller scores only. It is followed in a proof of its own, `with masks_from(10000)`: fewer
numbers are ordinary there, and the assumption names the number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import torch

MASKING_THRESHOLD: Final = 1e8  # float32: an entry this negative masks, under the assumption on the scores
LEAST_MASK: Final = 1e4  # no smaller number can be stated as the one from which numbers mask
ORDINARY_LIMIT: Final = 6e4  # float16 has nothing larger than 65504
ORDINARY_SHARE: Final = 0.1  # of a stated masking value: what is larger is not small compared with it
GREATEST_SCALE: Final = 64.0  # of scores after the mask was added: the square root of a head's width
LEAST_SCALED_MASK: Final = 625.0  # of a stated masking value after scaling: its exponential is zero next to others
FINITE_SCORES_ASSUMPTION = (
    "scores of visible and of hidden tokens are finite and small compared with the masking value "
    "(finite mask, not -inf)"
)
VISIBLE_ROW_ASSUMPTION = "each token sees a key: a row of scores that are all -inf gives NaN"
SMALL_INTEGERS_ASSUMPTION = "integers that depend on inputs, such as position ids, are less than 2^31 in size"

_least_mask: ContextVar[float] = ContextVar("least_mask", default=MASKING_THRESHOLD)


@contextmanager
def masks_from(size: float) -> Iterator[None]:
    """Let numbers of at most minus this size mask. Raises `ValueError` for a size below LEAST_MASK."""
    if not LEAST_MASK <= size <= MASKING_THRESHOLD:
        raise ValueError(f"expected masks from {LEAST_MASK:g} to {MASKING_THRESHOLD:g}; got {size:g}")
    token = _least_mask.set(size)
    try:
        yield
    finally:
        _least_mask.reset(token)


def masking_threshold(dtype: torch.dtype) -> float:
    """The size from which a negative number masks: at most 6e4 in float16, which has no larger numbers."""
    return min(_least_mask.get(), ORDINARY_LIMIT) if dtype is torch.float16 else _least_mask.get()


def largest_ordinary() -> float:
    """The size from which a number is not ordinary."""
    return min(ORDINARY_LIMIT, ORDINARY_SHARE * _least_mask.get())


def greatest_scale() -> float:
    """The number by which masked scores may be divided in all."""
    return min(GREATEST_SCALE, _least_mask.get() / LEAST_SCALED_MASK)


def finite_scores_assumption() -> str:
    """The assumption of a proof in which a finite mask hides scores; it names a masking value that is stated."""
    size = _least_mask.get()
    if size == MASKING_THRESHOLD:
        return FINITE_SCORES_ASSUMPTION
    return FINITE_SCORES_ASSUMPTION.replace("the masking value", f"{size:.10g}, the least masking value")
