"""Interval arithmetic on value ranges: how masks pass through elementwise operators.

The operations are those of a textbook on intervals, followed by `rounded`. Sums and products of ordinary numbers are
ordinary by assumption, so an ordinary end changes no larger end of a sum. Elements that are exact in every operand are
evaluated instead (`rules/pointwise.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from orderproof.diagnosis.domain.values import (
    BoolArray,
    Ends,
    ValueRanges,
    masking_elements,
    ordinary_limit,
    rounded,
    same_numbers,
)
from orderproof.diagnosis.operands import Operand
from orderproof.diagnosis.rule import OperatorCall, dtype_of
from orderproof.number_limits import FINITE_SCORES_ASSUMPTION, ORDINARY_LIMIT

MULTIPLY = {"mul", "multiply"}
DIVIDE = {"div", "true_divide"}
SUMS = {"add", "sub", "rsub"}
EXPONENTIAL = {"exp", "exp2"}
BOUNDED_BELOW_OPERATORS = EXPONENTIAL | {"sigmoid", "relu", "softplus", "expm1", "elu"}  # no mask passes through
AND = {"bitwise_and", "logical_and", "__and__"}
OR = {"bitwise_or", "logical_or", "__or__"}
MAXIMUM_OPERATORS = {"max", "maximum"}
CLAMPS = {"clamp", "clamp_min", "clamp_max", "hardtanh"}
COPY_OPERATORS = {
    "clone", "_to_copy", "to", "type_as", "contiguous", "alias", "lift_fresh_copy", "detach", "positive", "dropout",
}  # fmt: skip
OPERATORS_WITH_ABSORBING_VALUES = SUMS | MULTIPLY | AND | OR | {"where", "masked_fill"}


def add(a: ValueRanges, b: ValueRanges, dtype: torch.dtype) -> ValueRanges:
    """The sum a + b. -inf absorbs every number but +inf and NaN."""
    (a_low, a_high), (b_low, b_high) = (_without_ordinary(r, dtype) for r in (a, b))
    absent = (a.exactly(-np.inf) | b.exactly(-np.inf)) & (a.high < np.inf) & (b.high < np.inf)
    return rounded(a_low + b_low, a_high + b_high, dtype).with_exact(absent, -np.inf)


def negative(a: ValueRanges) -> ValueRanges:
    """The ranges of -a."""
    low, high = _floats(a)
    return ValueRanges(-high, -low)


def multiply(a: ValueRanges, b: ValueRanges, dtype: torch.dtype) -> ValueRanges:
    """A product a b. Zero absorbs every number that is certainly finite."""
    zero = (a.exactly(0) & _certainly_finite(b)) | (b.exactly(0) & _certainly_finite(a))
    return _from_corners(np.multiply, _floats(a), _floats(b), dtype).with_exact(zero, 0)


def divide(a: ValueRanges, b: ValueRanges, dtype: torch.dtype) -> ValueRanges:
    """A quotient a / b. Nothing is known if b may be 0, whose sign is not known; an ordinary divisor is not 0."""
    low, high = _floats(b)
    ordinary = (low == -1) & (high == 1)
    may_be_zero = (low <= 0) & (high >= 0) & ~ordinary
    divisor = tuple(np.where(may_be_zero, np.nan, end) for end in (low, high))
    return _from_corners(np.divide, _floats(a), divisor, dtype).with_exact(a.exactly(0) & ordinary, 0)


def maximum(a: ValueRanges, b: ValueRanges, dtype: torch.dtype) -> ValueRanges:
    """The larger of two."""
    (a_low, a_high), (b_low, b_high) = _floats(a), _floats(b)
    return rounded(np.maximum(a_low, b_low), np.maximum(a_high, b_high), dtype)


def clamp(a: ValueRanges, least: float, greatest: float, dtype: torch.dtype) -> ValueRanges:
    """min(max(a, least), greatest)."""
    low, high = (np.minimum(np.maximum(end, least), greatest) for end in _floats(a))
    return rounded(low, high, dtype)


def select(condition: ValueRanges, yes: ValueRanges, no: ValueRanges, dtype: torch.dtype) -> ValueRanges:
    """`yes` where the condition is true, `no` where it is false, and either where it is not known."""
    (yes_low, yes_high), (no_low, no_high) = _floats(yes), _floats(no)
    either = rounded(np.minimum(yes_low, no_low), np.maximum(yes_high, no_high), dtype)
    true, sure = condition.low != 0, condition.exact
    low, high = (
        np.where(sure, np.where(true, y, n), e)
        for y, n, e in ((yes.low, no.low, either.low), (yes.high, no.high, either.high))
    )
    same = yes.exact & no.exact & same_numbers(yes_low, no_low)
    return ValueRanges(low, high).with_exact(same, yes_low)


def transfer_values(call: OperatorCall, name: str, operands: list[Operand], ranges: list[ValueRanges]) -> ValueRanges:
    """The ranges of an elementwise operator's result at the elements that are not exact in every operand."""
    dtype, rank = call.node.meta["val"].dtype, len(call.shape)
    if name in SUMS | MULTIPLY | DIVIDE:
        return _arithmetic(call, name, ranges, dtype)
    if name in COPY_OPERATORS:
        return rounded(*_floats(ranges[0]), dtype)
    if name in MAXIMUM_OPERATORS and len(ranges) == 2:
        return maximum(ranges[0], ranges[1], dtype)
    if name in CLAMPS and len(ranges) == 1:
        return clamp(ranges[0], *clamp_bounds(call), dtype)
    if name in BOUNDED_BELOW_OPERATORS and all(0 < x < ORDINARY_LIMIT for x in literal_arguments(call)):
        above = np.where(ranges[0].high < ORDINARY_LIMIT, 1.0, np.nan)
        result = rounded(np.full_like(above, -1.0), above, dtype)
        masked = masking_elements(ranges[0], dtype) & ~ranges[0].exact & (name in EXPONENTIAL)
        if masked.any():  # exp underflows
            call.assume(FINITE_SCORES_ASSUMPTION)
        return result.with_exact(masked, 0)
    if dtype is torch.bool and name in AND | OR:
        absorbing = name in OR
        decided = reduce(np.logical_or, [r.exact & ((r.low != 0) == absorbing) for r in ranges])
        decided = decided | absorbs_all(call, name)
        return ValueRanges.ordinary(rank).with_exact(decided, absorbing)
    if dtype.is_floating_point or dtype.is_complex:
        usual = reduce(np.logical_and, [r.within(ORDINARY_LIMIT) for r in ranges])
        usual = usual & (not has_large_number(call, name))
    else:  # an integer or boolean that is computed from finite numbers
        usual = reduce(np.logical_and, [r.within(ORDINARY_LIMIT) | _certainly_finite(r) for r in ranges])
    low = np.where(usual, -1.0, -np.inf)
    return rounded(low, -low, dtype)


def absorbs_all(call: OperatorCall, name: str) -> bool:
    """True of `x & False` and `x | True`: a number among the arguments decides a boolean result."""
    numbers = [bool(x) for x in call.args if isinstance(x, int)]
    return dtype_of(call.node) is torch.bool and (name in OR if any(numbers) else name in AND and bool(numbers))


def _arithmetic(call: OperatorCall, name: str, ranges: list[ValueRanges], dtype: torch.dtype) -> ValueRanges:
    """A sum, difference, product or quotient of two arguments, tensors or numbers."""
    tensors = iter(ranges)
    arguments = call.argument(0, "self"), call.argument(1, "other")
    a, b = (_argument_ranges(x, tensors, len(call.shape)) for x in arguments)
    if name in MULTIPLY:
        return multiply(a, b, dtype)
    if name in DIVIDE:
        found = divide(a, b, dtype)
        if call.node.kwargs.get("rounding_mode") is None:
            return found
        finite = _certainly_finite(a) & _certainly_finite(b)  # torch rounds a quotient of -inf to NaN
        return ValueRanges(np.where(finite, found.low, -np.inf), np.where(finite, found.high, np.nan))
    if name == "rsub":
        a, b = b, a
    factor = call.argument(2, "alpha", 1)
    if factor != 1:
        b = multiply(b, _argument_ranges(factor, tensors, len(call.shape)), dtype)
    return add(a, b if name == "add" else negative(b), dtype)


def _argument_ranges(argument: Any, tensors: Any, rank: int) -> ValueRanges:
    """The ranges of an argument: of the next tensor, or of a number."""
    if isinstance(argument, Node):
        found: ValueRanges = next(tensors)
        return found
    return ValueRanges.of_constant(np.full((1,) * rank, argument))


def clamp_bounds(call: OperatorCall) -> tuple[float, float]:
    """The smallest and the largest value of the result of a clamp."""
    name = call.target.split(".")[1]
    low, high = {
        "clamp": (call.argument(1, "min"), call.argument(2, "max")),
        "clamp_min": (call.argument(1, "min"), None),
        "clamp_max": (None, call.argument(1, "max")),
        "hardtanh": (call.argument(1, "min_val", -1), call.argument(2, "max_val", 1)),
    }[name]
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)


def has_large_constant(call: OperatorCall, name: str, operands: list[Operand]) -> bool:
    """True if a constant or a number of this call may be as large as a mask, or its reciprocal if it divides."""
    constants = [o.node for o in operands if o.node is not None and o.node in call.constants]
    divides = name in DIVIDE and call.argument(1, "other") in constants
    return divides or has_large_number(call, name) or any(map(call.constants.has_masking_magnitude, constants))


def has_large_number(call: OperatorCall, name: str) -> bool:
    """True if a number among a node's arguments is as large as a mask, or its reciprocal if it divides."""
    numbers = literal_arguments(call)
    return any(not abs(x) < ORDINARY_LIMIT or (name in DIVIDE and abs(x) < 1 / ORDINARY_LIMIT) for x in numbers)


def literal_arguments(call: OperatorCall) -> list[float]:
    """The numbers among a node's arguments."""
    return [
        float(x)
        for x in [*call.args, *call.node.kwargs.values()]
        if isinstance(x, int | float) and not isinstance(x, bool)
    ]


def _from_corners(
    operator: Callable[[Any, Any], Any], a: tuple[Ends, ...], b: tuple[Ends, ...], dtype: torch.dtype
) -> ValueRanges:
    """The interval of an operator that is monotone in each operand: its extreme values are at pairs of ends."""
    corners = [operator(x, y) for x in a for y in b]
    return rounded(reduce(np.minimum, corners), reduce(np.maximum, corners), dtype)


def _floats(ranges: ValueRanges) -> tuple[Ends, Ends]:
    """Both ends as float64."""
    return ranges.low.astype(np.float64, copy=False), ranges.high.astype(np.float64, copy=False)


def _without_ordinary(ranges: ValueRanges, dtype: torch.dtype) -> tuple[Ends, ...]:
    """Both ends with 0 for those that are ordinary."""
    return tuple(np.where(np.abs(end) < ordinary_limit(dtype), 0.0, end) for end in _floats(ranges))


def _certainly_finite(ranges: ValueRanges) -> BoolArray:
    """Elements that are ordinary, or exactly a finite number."""
    finite: BoolArray = ranges.within(ORDINARY_LIMIT) | (ranges.exact & (np.abs(ranges.low) < np.inf))
    return finite
