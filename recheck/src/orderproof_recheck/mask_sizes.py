"""From which size on numbers mask, and below which they are ordinary: as always, or as a range of lengths states it.

A range of lengths may state that numbers of at most minus 10000, or minus a larger number, mask. Then fewer numbers are
ordinary, and the assumption about scores names the number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from orderproof_recheck.assumptions import FINITE_SCORES_ASSUMPTION
from orderproof_recheck.logic.notation import is_integer, require

USUAL = 1e8  # a number of at most minus this hides
LEAST_STATED = 1e4
LARGEST_OF_FLOAT16 = 6e4  # of which a mask of float16 has the size; a number of at least this size is not ordinary
MAX_SCALE = 64.0
LEAST_SCALED = 625.0  # the size of a stated masking value after all scalings

_size: ContextVar[float] = ContextVar("_size", default=USUAL)


@contextmanager
def stated_masks(size: Any) -> Iterator[None]:
    """Let numbers of at most minus this size mask; None for the usual size. Raises `CertificateError`."""
    if size is not None:
        number = isinstance(size, float) or is_integer(size)
        require(number and LEAST_STATED <= size < USUAL, "masks are stated from another size than 10000 to 10^8")
    token = _size.set(USUAL if size is None else float(size))
    try:
        yield
    finally:
        _size.reset(token)


def mask_limit(dtype: str) -> float:
    """A number of at most minus this hides."""
    return min(_size.get(), LARGEST_OF_FLOAT16) if dtype == "float16" else _size.get()


def ordinary_limit() -> float:
    """A number of at least this size is not ordinary."""
    return min(LARGEST_OF_FLOAT16, _size.get() / 10)


def max_scale() -> float:
    """The number by which masked scores may be divided in all."""
    return min(MAX_SCALE, _size.get() / LEAST_SCALED)


def finite_scores() -> str:
    """The assumption about scores next to a finite mask."""
    size = _size.get()
    if size == USUAL:
        return FINITE_SCORES_ASSUMPTION
    return FINITE_SCORES_ASSUMPTION.replace("the masking value", f"{size:.10g}, the least masking value")
