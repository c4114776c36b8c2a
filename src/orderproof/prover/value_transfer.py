"""Elementwise arithmetic on value ranges: how masks pass through operators.

The transfer functions of `domain/values.py`: ordinary + masking is masking, 0 x is 0 unless x may be infinite, and a
result that combines a masking entry with a number as large, without being masking itself, is unbounded.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node

from orderproof.prover.domain.values import (
    FINITE_SCORES_ASSUMPTION,
    ORDINARY_LIMIT,
    BoolArray,
    RangeKind,
    ValueRanges,
    at_most_ordinary_elements,
    masking_elements,
    masking_threshold,
    nonfinite_elements,
    out_of_ordinary_range,
)
from orderproof.prover.operands import Operand
from orderproof.prover.rule import OperatorCall, dtype_of

ADDITIVE_OPERATORS = {"add", "sub"}
MULTIPLY = {"mul", "multiply"}
DIVIDE = {"div", "true_divide"}
INTEGER_GROWTH_OPERATORS = ADDITIVE_OPERATORS | MULTIPLY | {"rsub"}  # integers may become as large as a mask
EXPONENTIAL = {"exp", "exp2"}
BOUNDED_BELOW_OPERATORS = EXPONENTIAL | {"sigmoid", "relu", "softplus", "expm1", "elu"}  # no mask passes through
AND = {"bitwise_and", "logical_and", "__and__"}
OR = {"bitwise_or", "logical_or", "__or__"}
MAXIMUM_OPERATORS = {"max", "maximum"}
COPY_OPERATORS = {
    "clone", "_to_copy", "to", "type_as", "contiguous", "alias", "lift_fresh_copy", "detach", "positive", "dropout",
}  # fmt: skip
OPERATORS_WITH_ABSORBING_VALUES = ADDITIVE_OPERATORS | MULTIPLY | AND | OR | {"where", "masked_fill"}


def has_masking_magnitude_operand(call: OperatorCall, operands: list[Operand]) -> bool:
    """True if a constant or a literal of this call is as large as a mask."""
    if any(
        o.node is not None and o.node in call.constants and call.constants.has_masking_magnitude(o.node)
        for o in operands
    ):
        return True
    if call.target.split(".")[1] in DIVIDE and _is_near_zero_divisor(_divisor(call)).any():
        return True
    return any(abs(x) >= ORDINARY_LIMIT for x in literal_arguments(call))


def _divisor(call: OperatorCall) -> Any:
    """The divisor of a division; 1 if it is not known."""
    divisor = call.args[1]
    if isinstance(divisor, Node):
        divisor = call.constants.array(divisor) if divisor in call.constants else None
    return 1.0 if divisor is None else divisor


def _is_near_zero_divisor(divisor: Any) -> BoolArray:
    """Elements so close to 0 that dividing by them multiplies by a number as large as a mask."""
    found: BoolArray = np.abs(np.asarray(divisor, dtype=np.float64)) < 1 / ORDINARY_LIMIT
    return found


def elements_of_masking_magnitude(call: OperatorCall, operands: list[Operand], ranges: list[ValueRanges]) -> BoolArray:
    """Elements at which a constant or a literal is as large as a mask; all of them if that is not known."""
    found = np.full((1,) * len(call.shape), any(abs(x) >= ORDINARY_LIMIT for x in literal_arguments(call)))
    for operand, one in zip(operands, ranges, strict=True):
        if one.exact.any():
            with np.errstate(invalid="ignore"):
                found = found | (one.exact & ~(np.abs(one.value.astype(np.float64)) < ORDINARY_LIMIT))
        elif (
            operand.node is not None
            and operand.node in call.constants
            and call.constants.has_masking_magnitude(operand.node)
        ):
            found = np.ones_like(found)
    return found


def literal_arguments(call: OperatorCall) -> list[float]:
    """The numbers among a node's arguments."""
    return [
        float(x)
        for x in [*call.args, *call.node.kwargs.values()]
        if isinstance(x, int | float) and not isinstance(x, bool)
    ]


def transfer_values(
    call: OperatorCall, name: str, operands: list[Operand], ranges: list[ValueRanges]
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Kind and value of the elements that are not exact; the value of a masking element is its upper bound.

    Ordinary + masking is masking (the assumption bounds ordinary numbers); so is masking times a positive number,
    as long as the bound is that of a mask. AT_MOST_ORDINARY is kept by the same operations. Any other result of a
    masking operand is UNBOUNDED.
    """
    dtype = call.node.meta["val"].dtype
    dtypes = [dtype_of(o.node) if o.node is not None else torch.float32 for o in operands]
    masked = [masking_elements(r, d) for r, d in zip(ranges, dtypes, strict=True)]
    any_unbounded = reduce(np.logical_or, [r.unbounded for r in ranges])
    any_masked = reduce(np.logical_or, masked)
    low = reduce(np.logical_or, [r.at_most_ordinary for r in ranges])
    bound = np.zeros((1,) * len(call.shape))
    values = [np.where(r.exact | r.masking, r.value.astype(np.float64), 0.0) for r in ranges]
    literals = [float(x) for x in call.args if isinstance(x, int | float) and not isinstance(x, bool)]
    large = elements_of_masking_magnitude(call, operands, ranges) & (
        dtype.is_floating_point or (name in INTEGER_GROWTH_OPERATORS and dtype is not torch.bool)
    )
    if name in DIVIDE and len(ranges) == 2:
        large = large | (ranges[1].exact & _is_near_zero_divisor(ranges[1].value))
    elif name in DIVIDE:
        large = large | _is_near_zero_divisor(_divisor(call)).any()
    still_masking = still_open = np.zeros_like(any_masked)
    unscaled = call.node.kwargs.get("alpha", 1) == 1 and len(call.args) < 3
    if name == "add" and unscaled:
        # AT_MOST_ORDINARY may be -inf already: with a mask added it has no finite bound.
        still_masking, bound, still_open = (
            any_masked & ~low,
            reduce(np.add, values) + sum(literals),
            low & (any_masked | ~large),
        )
    elif name == "sub" and unscaled and isinstance(call.args[0], Node):
        plain_subtrahend = ranges[1].ordinary | ranges[1].exact if len(ranges) == 2 else ~still_open
        still_masking, bound = (
            masked[0] & plain_subtrahend,
            values[0] - (values[1] if len(ranges) == 2 else sum(literals)),
        )
        still_open = ranges[0].at_most_ordinary & plain_subtrahend & ~large
    elif name in MULTIPLY | DIVIDE and "rounding_mode" not in call.node.kwargs:
        still_masking, bound, still_open = _scaled_values(call, name, ranges, masked, values, literals)
        still_open = still_open & ~large
    elif name in COPY_OPERATORS:
        still_masking, bound, still_open = any_masked, values[0], low
    elif name in MAXIMUM_OPERATORS and len(ranges) == 2:
        return _maximum_values(ranges, masked, values, dtype)
    still_masking = still_masking & (bound <= -masking_threshold(dtype)) & ~any_unbounded & dtype.is_floating_point
    still_open = still_open & ~any_unbounded & dtype.is_floating_point
    # A softplus of negative slope turns a mask into a large number.
    bounded_below = name in BOUNDED_BELOW_OPERATORS and all(x > 0 for x in literals)
    unbounded = any_unbounded | large if bounded_below else any_unbounded | large | any_masked | low
    kind = np.where(
        still_masking,
        RangeKind.MASKING,
        np.where(still_open, RangeKind.AT_MOST_ORDINARY, np.where(unbounded, RangeKind.UNBOUNDED, RangeKind.ORDINARY)),
    )
    return kind.astype(np.uint8), np.where(still_masking, bound, 0.0)


def _maximum_values(
    ranges: list[ValueRanges], masked: list[BoolArray], values: list[Any], dtype: torch.dtype
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """The larger of two: masking if both are, ordinary if one is and neither may be larger, else at most ordinary."""
    ordinary = [r.ordinary | (r.exact & ~out_of_ordinary_range(r, dtype)) for r in ranges]
    high = reduce(
        np.logical_or,
        [~at_most_ordinary_elements(r) | (out_of_ordinary_range(r, dtype) & ~(r.value < 0)) for r in ranges],
    )
    both, bound = masked[0] & masked[1], np.maximum(*values)
    kind = np.where(
        both, RangeKind.MASKING, np.where(ordinary[0] | ordinary[1], RangeKind.ORDINARY, RangeKind.AT_MOST_ORDINARY)
    )
    return np.where(high, RangeKind.UNBOUNDED, kind).astype(np.uint8), np.where(both & ~high, bound, 0.0)


def _scaled_values(
    call: OperatorCall,
    name: str,
    ranges: list[ValueRanges],
    masked: list[BoolArray],
    values: list[Any],
    literals: list[float],
) -> tuple[BoolArray, NDArray[Any], BoolArray]:
    """Masking elements of an operand times or divided by a positive number; their bounds; at most ordinary ones."""
    low = [r.at_most_ordinary for r in ranges]
    has_mask = [bool((m | x).any()) for m, x in zip(masked, low, strict=True)]
    if len(ranges) == 1 and literals and isinstance(call.args[0], Node):
        masked_operand, factor = 0, np.asarray(literals[0])
        positive_factor = np.asarray(literals[0] > 0)
    elif len(ranges) == 2 and (name in DIVIDE or has_mask[0] != has_mask[1]):
        masked_operand = 0 if name in DIVIDE or has_mask[0] else 1
        factor = values[1 - masked_operand]
        positive_factor = ranges[1 - masked_operand].exact & (factor > 0)
    else:
        return np.zeros_like(masked[0]), np.zeros((1,) * len(call.shape)), np.zeros_like(masked[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = values[masked_operand] / factor if name in DIVIDE else values[masked_operand] * factor
    bound = np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=-np.inf)
    return (
        masked[masked_operand] & positive_factor,
        bound,
        low[masked_operand] & positive_factor & (np.abs(factor) < np.inf),
    )


def absorbed_elements(call: OperatorCall, name: str, ranges: list[ValueRanges]) -> tuple[BoolArray | None, Any]:
    """Elements that one operand decides alone (0 * x, -inf + x, False and x), and the value they take."""

    def one_is(test: Any) -> BoolArray:
        found: BoolArray = reduce(np.logical_or, [r.exact & test(r.value) for r in ranges])
        return found

    # Zero times infinity and infinity minus infinity are NaN.
    infinite = reduce(np.logical_or, [r.open_below | nonfinite_elements(r) for r in ranges])
    plus_infinite = reduce(
        np.logical_or, [r.unbounded | (nonfinite_elements(r) & ~(r.value == -np.inf)) for r in ranges]
    )

    boolean = call.node.meta["val"].dtype is torch.bool
    if name in EXPONENTIAL and ranges[0].masking.any():  # exp underflows
        call.assume(FINITE_SCORES_ASSUMPTION)
        return ranges[0].masking, 0
    if name in MULTIPLY:
        return one_is(lambda v: v == 0) & ~infinite, 0
    if name == "add" and len(ranges) > 1 and call.node.kwargs.get("alpha", 1) == 1:
        return one_is(lambda v: v == -np.inf) & ~plus_infinite, -np.inf
    if name in AND and boolean:
        return one_is(lambda v: v == 0), False
    if name in OR and boolean:
        return one_is(lambda v: v != 0), True
    return None, None
