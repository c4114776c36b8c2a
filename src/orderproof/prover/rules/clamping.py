"""Clamping: bounds that are far away leave ordinary numbers ordinary.

Lemma (pointwise_equivariant, for clamping). Let C[e] = min(max(A[e], low), high). Then
|C[e]| <= max(|A[e]|, low, -high): where low is less than a large number and high more than its negative, what was
ordinary stays ordinary, however large the bounds on their own sides (time steps are clamped to [0, inf]).
Otherwise nothing follows: C[e] may be as large as a bound (max(a, 1e9) is never less than 1e9).
Proof. -|a| <= max(a, low) <= max(|a|, low), and the minimum of that and high is no larger, and no less than
min(-|a|, high). Arithmetic: exact in floating point too.
"""

from __future__ import annotations

import numpy as np

from orderproof.prover.fact import FLOAT16_LARGE, UNKNOWN, Fact, Known
from orderproof.prover.rule import Application, rule
from orderproof.prover.rules.pointwise import pointwise


@rule("pointwise_equivariant", "clamp.default", "clamp_min.default", "clamp_max.default", "hardtanh")
def clamp(a: Application) -> Fact:
    """min(max(x, low), high)."""
    made = pointwise(a)
    assert isinstance(made, Fact)
    low, high = bounds(a)
    if made.known is None or not (low < FLOAT16_LARGE and high > -FLOAT16_LARGE):
        return made
    known = a.fact(a.args[0]).known
    if known is None and a.may_mask(a.args[0]):
        return made
    plain = np.full((1,) * len(made.shape), True) if known is None else known.where(UNKNOWN)
    status = np.where(plain, UNKNOWN, made.known.status).astype(np.uint8)
    return Fact(made.shape, made.moves, made.level, Known(status, made.known.value) if status.any() else None)


def bounds(a: Application) -> tuple[float, float]:
    """The lowest and the highest number it lets through."""
    name = a.target.split(".")[1]
    low, high = {
        "clamp": (a.argument(1, "min"), a.argument(2, "max")),
        "clamp_min": (a.argument(1, "min"), None),
        "clamp_max": (None, a.argument(1, "max")),
        "hardtanh": (a.argument(1, "min_val", -1), a.argument(2, "max_val", 1)),
    }[name]
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)
