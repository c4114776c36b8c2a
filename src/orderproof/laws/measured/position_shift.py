"""OP301 position_shift: adding a constant to all position ids does not change the output.

    f(x; p + c) = f(x; p)   for every c.

It holds if scores depend on differences of positions only: rotary encodings, and biases by distance. A learned or
sinusoidal table of absolute positions violates it by design, so the law is a property of a model. A relative encoding
must obey it. Rotary encodings do because R(p)^T R(s) = R(s - p), which needs an orthogonal R(p). If the cosines have
one layout and the rotation pairs features in the other, R(p) is not orthogonal, the norms of queries change with p,
and the law is violated.

Constants stay below `MAX_SHIFT`: an angle computed in float32 at position p has an error of p 2^-24.
Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, section 3.2; mixed layouts: raiyanyahya/how-to-train-your-gpt#6,
NVIDIA/ngpt#10, xiangking/ark-nlp#47.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import move_second_half
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.records.audit import Remedy

SHIFTS = (1, 37)
MAX_SHIFT = 97


class PositionShift(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        for constant in shifts(calls):
            yield Comparison(f"all position ids shifted by {constant}", partial(_compare_shifted, constant=constant))

    def control(self, calls: CachedCalls) -> OutputPair:
        return move_second_half(calls)


def shifts(calls: CachedCalls) -> list[int]:
    """The constants to add, within the length that the model states: some, and to and past each threshold."""
    most = calls.adapter.max_positions or calls.adapter.config_max_positions
    room = MAX_SHIFT if most is None else min(most - calls.default_length, MAX_SHIFT)
    half = calls.default_length // 2
    past = [n for t in calls.adapter.thresholds for n in (t.tokens - half, t.tokens) if 0 < n < room]
    return sorted({*past, *(min(constant, room) for constant in (*SHIFTS, room) if room > 0)})


def _compare_shifted(calls: CachedCalls, *, constant: int) -> OutputPair:
    count = calls.default_length
    default, shifted = calls.default_position_ids(count), calls.default_position_ids(count, start=constant)
    return calls.forward_at(calls.default_tokens, default), calls.forward_at(calls.default_tokens, shifted)


LAW = PositionShift(
    code="OP301",
    name="position_shift",
    statement="Adding a constant to all position ids does not change the output.",
    trait="depends on relative positions only",
    kind="property",
    expectation={},
    remedy="Absolute positions violate this by design. Relative ones must not: let scores depend on differences of "
    "positions only.",
    remedies={
        "table": Remedy(text="A table of absolute positions violates this by design: nothing is to be done."),
        "rotary": Remedy(
            text="Pair features in the layout of the cosines, and rotate queries and keys by the same positions. A "
            "scale that depends on the position violates this by design."
        ),
    },
    required_inputs=frozenset({"positions"}),
)
