"""Parameters of which some run soon and all with `-m slow`: rows with every pair of values, or the first values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest
from allpairspy import AllPairs


def pairs_soon(*axes: Iterable[Any], allowed: Callable[..., bool] = lambda *_: True) -> list[Any]:
    """The rows of a product as parameters; those that no pair of values needs are marked slow."""
    values = [list(axis) for axis in axes]
    rows = [row for row in product(*values) if allowed(*row)]
    beginnings = {row[:length] for row in rows for length in range(1, len(row) + 1)}
    soon = {tuple(row) for row in AllPairs(values, filter_func=lambda row: tuple(row) in beginnings)}
    return [pytest.param(*row, marks=() if row in soon else pytest.mark.slow) for row in rows]


def first_soon(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Values as parameters; those after the first ones are marked slow."""
    return [_parameter(x, soon=place < count) for place, x in enumerate(values)]


def one_in(count: int, values: Iterable[Any]) -> list[Any]:
    """Values as parameters; all but every ``count``-th are marked slow."""
    return [_parameter(x, soon=place % count == 0) for place, x in enumerate(values)]


def _parameter(value: Any, *, soon: bool) -> Any:
    """A parameter: of a value, of those of a plain tuple, or one that has marks of its own."""
    marks = [] if soon else [pytest.mark.slow]
    if hasattr(value, "marks"):
        return pytest.param(*value.values, marks=[*value.marks, *marks], id=value.id)
    return pytest.param(*(value if type(value) is tuple else (value,)), marks=marks)
