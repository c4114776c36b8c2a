"""Integer bisection for the exact thresholds of logarithmic distance buckets."""

from __future__ import annotations

from collections.abc import Callable


def first_integer(condition: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest n in low .. high - 1 for which a monotone condition is true; high if there is none."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if condition(middle) else (middle + 1, high)
    return low
