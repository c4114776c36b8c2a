"""Checks of the numbers in schedules and rotary encodings."""

from __future__ import annotations

import math

from orderproof.errors import EncodingError


def check_positive(owner: str, **numbers: object) -> None:
    """Reject a number that is not above zero, or not finite; each is named by its keyword."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise EncodingError(f"{owner}: {name} must be a number above 0, got {value!r}")


def check_length(owner: str, **lengths: object) -> None:
    """Reject a length that is not a whole number above zero; each is named by its keyword."""
    for name, value in lengths.items():
        if type(value) is not int or value < 1:
            raise EncodingError(f"{owner}: {name} must be an integer, 1 or more, got {value!r}")


def check_not_negative(owner: str, **numbers: object) -> None:
    """Reject a number that is below zero, or not finite; each is named by its keyword."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise EncodingError(f"{owner}: {name} must be a number, 0 or more, got {value!r}")


def check_factor(owner: str, factor: float) -> None:
    """Reject a factor that would shorten the sequence."""
    check_positive(owner, factor=factor)
    if factor < 1:
        raise EncodingError(
            f"{owner}: factor must be 1 or more, the ratio of the new to the original length, got {factor!r}"
        )
