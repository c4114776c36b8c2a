"""Interval arithmetic: what an operation makes of numbers in intervals is in the interval that it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from orderproof.diagnosis import value_transfer as arithmetic
from orderproof.diagnosis.domain.values import (
    ValueRanges,
    masking_elements,
    may_be_masking_or_infinite,
    rounded,
    row_visibility,
)
from tests.diagnosis.sampling.contradictions import outside
from tests.diagnosis.sampling.operands import ORDINARY, Array

SIZE = 4000
INTERVALS = [  # ends, and numbers between them
    ((-1, 1), (0.0, -0.0, 1.0, -3.0, 0.25, 17.0)),
    ((0, 0), (0.0,)),
    ((-2.5, -2.5), (-2.5,)),
    ((3, 3), (3.0,)),
    ((1e-9, 1e-9), (1e-9,)),
    ((-1e9, -1e9), (-1e9,)),
    ((1e9, 1e9), (1e9,)),
    ((-np.inf, -np.inf), (-np.inf,)),
    ((np.inf, np.inf), (np.inf,)),
    ((np.nan, np.nan), (np.nan,)),
    ((-2e9, -1e9), (-1e9, -1.5e9, -2e9)),
    ((-1.7e308, -1e30), (-1.7e308, -1e30, -1e200)),
    ((-np.inf, -1e9), (-np.inf, -1e9, -1e300)),
    ((-np.inf, 1), (-np.inf, -1e9, -5.0, 0.0, 4.0)),
    ((-np.inf, np.nan), (-np.inf, -1e9, 0.0, 2.0, 1e9, np.inf, np.nan)),
]


def drawn(rng: np.random.Generator) -> tuple[ValueRanges, Array]:
    """Intervals, and a number in each."""
    kind = rng.integers(len(INTERVALS), size=SIZE)
    low, high = (np.array([float(INTERVALS[k][0][end]) for k in kind]) for end in (0, 1))
    return ValueRanges(low, high), np.array([rng.choice(INTERVALS[k][1]) for k in kind])


OPERATIONS: dict[str, tuple[Callable[..., ValueRanges], Callable[..., Any]]] = {
    "add": (arithmetic.add, np.add),
    "multiply": (arithmetic.multiply, np.multiply),
    "divide": (arithmetic.divide, np.divide),
    "maximum": (arithmetic.maximum, np.maximum),
    "subtract": (lambda a, b, dtype: arithmetic.add(a, arithmetic.negative(b), dtype), np.subtract),
    "clamp from 2": (lambda a, _, dtype: arithmetic.clamp(a, 2, np.inf, dtype), lambda a, _: np.clip(a, 2, None)),
    "clamp to [-1e9, 5]": (lambda a, _, dtype: arithmetic.clamp(a, -1e9, 5, dtype), lambda a, _: np.clip(a, -1e9, 5)),
    "clamp to 1e9": (lambda a, _, dtype: arithmetic.clamp(a, -np.inf, 1e9, dtype), lambda a, _: np.clip(a, None, 1e9)),
}


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_result_of_an_operation_is_in_its_interval(name: str) -> None:
    of_intervals, of_numbers = OPERATIONS[name]
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        (a, x), (b, y) = drawn(rng), drawn(rng)
        if name == "divide":  # a quotient of ordinary numbers is ordinary by assumption: none of them is nearly zero
            y = np.where((b.low == -1) & (b.high == 1) & (abs(y) < 0.2), 0.25, y)
        result, z = of_intervals(a, b, torch.float64), of_numbers(x, y)
        wrong = (outside(z, result.low, result.high, ORDINARY) & ~result.exact) | (
            result.exact & ~_equal(z, result.low)
        )
    assert not wrong.any(), [(u[wrong][0]) for u in (a.low, a.high, b.low, b.high, x, y, z, result.low, result.high)]
    assert not np.isnan(result.high).all()  # it says something


@pytest.mark.parametrize("condition", [0.0, 1.0, None])
def test_selected_number_is_in_the_interval(condition: float | None) -> None:
    rng = np.random.default_rng(1)
    (a, x), (b, y) = drawn(rng), drawn(rng)
    one = np.zeros(1)
    chooser = ValueRanges(one - 1, one + 1) if condition is None else ValueRanges.of_constant(one + condition)
    with np.errstate(all="ignore"):
        result = arithmetic.select(chooser, a, b, torch.float64)
        for taken in (0.0, 1.0) if condition is None else (condition,):
            z = x if taken else y
            wrong = np.where(result.exact, ~_equal(z, result.low), outside(z, result.low, result.high, ORDINARY))
            assert not wrong.any()


def _equal(a: Array, b: Array) -> Array:
    same: Array = (a == b) | (np.isnan(a) & np.isnan(b))
    return same


def interval(low: float, high: float) -> ValueRanges:
    return ValueRanges(np.array([low]), np.array([high]))


def test_sum_with_a_mask_is_masked_and_finite() -> None:
    masked = arithmetic.add(ValueRanges.ordinary(1), interval(-1e9, -1e9), torch.float32)
    assert masking_elements(masked, torch.float32).all()
    assert np.isfinite(masked.low).all()
    assert not masked.exact.any()


def test_mask_added_twice_may_be_infinite() -> None:
    least = torch.finfo(torch.float32).min
    once = arithmetic.add(ValueRanges.ordinary(1), interval(least, least), torch.float32)
    again = rounded(once.low, once.high, torch.float32)  # of a copy
    assert np.isfinite([once.low, again.low]).all()
    assert np.isneginf(arithmetic.add(once, interval(least, least), torch.float32).low).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_mask_at_the_threshold_stays_one_in_a_sum(dtype: torch.dtype) -> None:
    mask = -6e4 if dtype is torch.float16 else -1e8
    total = arithmetic.add(ValueRanges.ordinary(1), interval(mask, mask), dtype)
    assert masking_elements(total, dtype).all()


def test_large_factor_makes_an_ordinary_number_unbounded() -> None:
    for factor, ordinary in ((5e4, True), (-5e4, True), (6e4, False), (-1e9, False), (np.inf, False)):
        product = arithmetic.multiply(ValueRanges.ordinary(1), interval(factor, factor), torch.float32)
        assert product.is_ordinary is ordinary


def test_division_by_zero_bounds_nothing() -> None:
    """The sign of a zero is not known: a masked number divided by -0 is +inf."""
    quotient = arithmetic.divide(interval(-2e9, -1e9), interval(0, 0), torch.float32)
    assert np.isnan(quotient.high).all()


def test_integers_that_are_not_ordinary_may_be_anything() -> None:
    assert np.isneginf(rounded(np.array([-1e9]), np.array([-1e9]), torch.int32).low).all()
    assert rounded(np.array([-np.inf]), np.array([np.nan]), torch.bool).is_ordinary


def test_integers_that_float64_does_not_hold_are_not_exact() -> None:
    known = ValueRanges.of_constant(np.array([2**53 + 1, 7]))
    assert known.exact.tolist() == [False, True]


def test_ranges_of_complex_numbers_are_those_of_their_magnitude() -> None:
    assert ValueRanges.of_constant(np.array([3 + 4j])).is_ordinary
    assert may_be_masking_or_infinite(ValueRanges.of_constant(np.array([1e9j])))


def test_line_that_may_hold_nan_has_no_visible_entry() -> None:
    line = ValueRanges(np.array([-1.0, -1e9, -np.inf]), np.array([1.0, -1e9, np.nan]))
    rows = row_visibility(line, torch.float32, 0)
    assert rows.visible.tolist() == [True, False, False]
    assert not rows.has_visible.any()
    assert rows.may_be_nonfinite.all()
