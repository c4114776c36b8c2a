"""Clamps: bounds far from the ordinary numbers keep ordinary numbers ordinary.

Lemma (pointwise_equivariant), for clamps. Let C[e] = min(max(A[e], low), high). Then
|C[e]| <= max(|A[e]|, low, -high). If low is less than a large number and high more than its negative, ordinary
elements remain ordinary, however large -low and high are (time steps are clamped to [0, inf]).
Otherwise an element may be as large as a bound: max(a, 1e9) is never less than 1e9.
Proof. -|a| <= max(a, low) <= max(|a|, low), and the minimum of that and high is no larger, and no less than
min(-|a|, high). Arithmetic: exact in floating point too.
"""

from __future__ import annotations

import numpy as np

from orderproof.prover.domain.fact import Fact, with_ranges
from orderproof.prover.domain.values import ORDINARY_LIMIT, RangeKind, ValueRanges
from orderproof.prover.rule import OperatorCall, rule
from orderproof.prover.rules.pointwise import pointwise


@rule("pointwise_equivariant", "clamp.default", "clamp_min.default", "clamp_max.default", "hardtanh")
def clamp(call: OperatorCall) -> Fact:
    """min(max(x, low), high)."""
    result = pointwise(call)
    assert isinstance(result, Fact)
    low, high = clamp_bounds(call)
    if result.ranges is None or not (low < ORDINARY_LIMIT and high > -ORDINARY_LIMIT):
        return result
    ranges = call.fact(call.args[0]).ranges
    if ranges is None and call.may_mask(call.args[0]):
        return result
    ordinary = np.full((1,) * len(result.shape), True) if ranges is None else ranges.ordinary
    kind = np.where(ordinary, RangeKind.ORDINARY, result.ranges.kind).astype(np.uint8)
    return with_ranges(result, ValueRanges(kind, result.ranges.value) if kind.any() else None)


def clamp_bounds(call: OperatorCall) -> tuple[float, float]:
    """The smallest and the largest value of the result."""
    name = call.target.split(".")[1]
    low, high = {
        "clamp": (call.argument(1, "min"), call.argument(2, "max")),
        "clamp_min": (call.argument(1, "min"), None),
        "clamp_max": (None, call.argument(1, "max")),
        "hardtanh": (call.argument(1, "min_val", -1), call.argument(2, "max_val", 1)),
    }[name]
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)
