"""OP302 distinct_positions: different positions have different outputs in the dtype in use, bfloat16 and autocast.

    f64(x; p) and f64(x; p') clearly differ   =>   f(x; p) and f(x; p') differ   for the last of four tokens at p

in the dtype in use, loaded in bfloat16, and in float32 under autocast to bfloat16. Positions reach the stated length:
geometrically spaced ones, each with its neighbour, and some that are equal modulo powers of two. Positions that are
equal in float64 too (buckets of distances, a bias so large that the softmax is zero) are equal by design. A violation
is exact: every number of the two outputs is the same, although they differ in float64 by more than
`CLEAR_DIFFERENCE_EPS` units of rounding.

A table of absolute positions that was computed with too few bits has equal rows in float64 too. Distances may share a
bucket by design, absolute positions may not, and only absolute positions change the output of a single token. So if
that output changes with the position at all, it must change with every position.

A large model is compared at the first and the last positions with its own weights, and at all of them with matrices of
low rank, unless a table of positions may be among the weights. The reference of bfloat16 is then in float32.

bfloat16 has 8 significant bits: it represents 769 of the integers below 4096. Position ids or angles in it collapse.
Source: huggingface/diffusers#13920 (all image tokens at one position under autocast), deepspeedai/DeepSpeed#4932.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from orderproof.adapter import Threshold
from orderproof.cast_on_use import is_large
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.dtype_reference import (
    NEIGHBOURS,
    DtypeMode,
    PositionedForward,
    dtype_modes,
    float64_reference,
    may_have_table,
    position_count,
    single_token_outputs,
)
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, NotedOutputs, OutputPair
from orderproof.recording.execution import relative_difference

SPACED_POSITIONS = 14  # geometrically spaced positions, each with its neighbour
ENDS = 2  # the first and the last positions of a large model with its own weights
PREFIX_TOKENS = 3  # tokens before the token that is moved
POSITION_EFFECT_EPS = 1000  # [units of rounding] a larger effect of the position is not rounding
CLEAR_DIFFERENCE_EPS = 4  # [units of rounding, relative to the largest output] a clear difference in float64


class DistinctPositions(MeasuredLaw):
    """The law of this module."""

    confirm_in_float64 = False  # one of the outputs is in float64
    every_length = False
    ignores_length = "it moves the last of 4 tokens to positions up to the stated length"
    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        reach = position_count(calls)
        places = position_schedule(reach, calls.adapter.thresholds)
        if len(places) > 1 and _has_absolute_positions(calls):
            yield Comparison(
                f"a single token at positions up to {reach - 1}", partial(_compare_single_token, places=places),
                of_weights=True,
            )  # fmt: skip
        own = _places_of_weights(calls, places, reach)
        for precision in dtype_modes(calls) if len(places) > 1 else ():
            what = f"positions up to {reach - 1} {precision.description}"
            if own != places:
                yield Comparison(f"{len(own)} {what}", partial(_compare_distinct, places=own, precision=precision))
            run = partial(_compare_distinct, places=places, precision=precision)
            yield Comparison(what, run, of_weights=own == places)

    def control(self, calls: CachedCalls) -> OutputPair:
        reach = position_count(calls)
        places = position_schedule(reach, calls.adapter.thresholds)
        own = _places_of_weights(calls, places, reach)
        wide = float64_reference(calls, None if own == places else next(dtype_modes(calls)))
        outputs = outputs_at_positions(wide, own, wide.forward_at)
        return outputs[:-1], outputs[1:]


def _places_of_weights(calls: CachedCalls, places: list[int], reach: int) -> list[int]:
    """The positions at which a large model is compared with its own weights: the first and the last ones.

    All of them where a table of positions may be among the weights.
    """
    large = len(places) > 2 * ENDS and is_large(calls.adapter.module)
    return [*places[:ENDS], *places[-ENDS:]] if large and not may_have_table(calls, reach) else places


def position_schedule(reach: int, thresholds: Sequence[Threshold] = ()) -> list[int]:
    """Positions after the prefix up to the last: geometrically spaced ones, each with its neighbour.

    Also some that coincide if positions wrap at a power of two, and the last before and the first past each threshold.
    """
    if reach <= PREFIX_TOKENS + 1:
        return []
    spaced = (
        torch.logspace(0, 1, SPACED_POSITIONS, base=(reach - 1) / PREFIX_TOKENS, dtype=torch.float64) * PREFIX_TOKENS
    )
    places = {int(place) for place in spaced.round()} | {int(place) + 1 for place in spaced.round()} | {reach - 2}
    places |= {PREFIX_TOKENS, *(PREFIX_TOKENS + 2**power for power in range(5, reach.bit_length()))}
    places |= {place for threshold in thresholds for place in (threshold.tokens - 1, threshold.tokens)}
    return sorted(place for place in places if PREFIX_TOKENS <= place < reach)


def outputs_at_positions(calls: CachedCalls, places: list[int], call: PositionedForward) -> Tensor:
    """The outputs [position, number] of a few tokens with the last of them at each of these positions."""
    tokens = torch.cat([calls.sample_tokens(PREFIX_TOKENS + 1, rows=1)] * len(places))
    positions = torch.arange(PREFIX_TOKENS + 1).repeat(len(tokens), 1)
    positions[:, -1] = torch.tensor(places)
    return call(tokens, calls.adapter.first_position_id + positions).reshape(len(places), -1)


def _compare_distinct(calls: CachedCalls, *, places: list[int], precision: DtypeMode) -> OutputPair | NotedOutputs:
    """For each position: 1, and whether it differs from all earlier ones from which it clearly differs in float64."""
    wide = float64_reference(calls, precision)
    exact = outputs_at_positions(wide, places, wide.forward_at)
    used = outputs_at_positions(calls, places, precision.forward)
    if not bool(exact.isfinite().all()) or not bool(used.isfinite().all()):
        return exact, used.to(exact.dtype)  # the measurement reports which
    clear = torch.cdist(exact, exact, p=float("inf")) > CLEAR_DIFFERENCE_EPS * precision.eps * exact.abs().max()
    if not bool(clear.any()):
        raise UnsupportedCallError(
            f"no positions differ in float64 by more than {CLEAR_DIFFERENCE_EPS} units of rounding"
        )
    return _report_equal_positions(clear & (used.unsqueeze(0) == used.unsqueeze(1)).all(-1), places)


def _has_absolute_positions(calls: CachedCalls) -> bool:
    """True if the output of a single token depends on its position.

    A narrow dtype rounds by more than the effect of a position, so float32 decides, unless no number differs.
    """
    try:
        near = single_token_outputs(calls, list(NEIGHBOURS))
        if calls.is_narrow and not torch.equal(near[0], near[1]):
            calls = calls.float32
            near = single_token_outputs(calls, list(NEIGHBOURS))
    except Exception:  # noqa: BLE001 - third-party code: a call may fail in any way
        return False
    return relative_difference(near[0], near[1]) > POSITION_EFFECT_EPS * torch.finfo(calls.weight_dtype).eps


def _compare_single_token(calls: CachedCalls, *, places: list[int]) -> OutputPair | NotedOutputs:
    outputs = single_token_outputs(float64_reference(calls), places)
    if not bool(outputs.isfinite().all()):
        return outputs, outputs
    least = POSITION_EFFECT_EPS * torch.finfo(outputs.dtype).eps * outputs.abs().max()
    return _report_equal_positions(torch.cdist(outputs, outputs, p=float("inf")) <= least, places)


def _report_equal_positions(same: Tensor, places: list[int]) -> NotedOutputs:
    """For each position: 1, and 0 if an earlier one is equal to it; and a pair of equal ones in words."""
    equal = torch.nonzero(same.tril(-1))
    distinct = torch.ones(len(places), dtype=torch.float64)
    distinct[equal[:, 0]] = 0.0
    note = ""
    if len(equal):
        later, earlier = (places[int(i)] for i in equal[0])
        note = f"{earlier} and {later} are one position; {len(equal)} pairs in all"
    return NotedOutputs(torch.ones_like(distinct), distinct, note)


LAW = DistinctPositions(
    code="OP302",
    name="distinct_positions",
    statement="Different positions have different outputs, in the dtype in use and in bfloat16.",
    trait="tells positions apart",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Keep position ids as integers, and compute what depends on them in float32 or float64, outside autocast; "
    "round the result, not the positions.",
    diff="-embedding = table.to(torch.bfloat16)[position_ids]\n+embedding = table.float()[position_ids]",
    required_inputs=frozenset({"positions"}),
)
