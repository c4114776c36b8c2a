"""OP303 position_precision: outputs at large positions are as precise as outputs at small ones.

    err(p) <= MAX_ERROR_RATIO max(err(near), eps) + ANGLE_ROUNDING_UNITS p 2^-24

err(p) is the difference to the same weights loaded in float64, for the second half of the tokens shifted by p from
the first half: relative to the norm of a typical output, and the median over tokens and rows, which the few tokens
that rounding routes to another expert do not move. err(near) is the largest error of a few small p that every
precision represents. eps is the unit of rounding of the dtype: the dtype in use, bfloat16, or that of autocast. An
angle computed in float32 at position p has an error of p 2^-24, which is allowed.

A table that was rounded when it was made is rounded in the reference too. It shows in steps: shifting all tokens by one
more changes the outputs of a relative encoding by rounding only, and those of an absolute one as much near the start as
far from it. With n(p) = |f(x; p + 1) - f(x; p)| for all tokens shifted by p,

    n(p) <= MAX_STEP_RATIO max(n(near), eps) + ANGLE_ROUNDING_UNITS p 2^-24.

A large model is compared at the largest p with its own weights, and at all of them with matrices of low rank, unless a
table of positions may be among the weights. The reference of bfloat16 is then in float32.

The law finds rounding that grows with the position: frequencies or positions in half precision. Rounding to 8 bits
moves a frequency by up to 2^-9 of its value, and the angle at p = 1000 by 2 radians. Shifting all tokens together
does not show it if only distances matter. No p is a power of two: those are exact in every precision. The reference
is loaded from the weights: a float64 copy of a model with rounded frequencies keeps them rounded. A comparison counts
only if shifting the second half by one part in 256 more, which bfloat16 rounds away, changes the output by more than
the bound.
Source: EleutherAI/gpt-neox#1003; huggingface/transformers#25681, #29496; deepspeedai/DeepSpeed#4932.
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
from orderproof.laws.measured.controls import move_second_half
from orderproof.laws.measured.dtype_reference import (
    DtypeMode,
    PositionedForward,
    dtype_modes,
    float64_reference,
    may_have_table,
    position_count,
)
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, NotedOutputs, OutputPair
from orderproof.records.audit import Remedy

ROWS_FOR_MEDIAN = 4
ROWS_OF_A_LARGE_MODEL = 2
NEAR_SHIFTS = (0, 1, 3, 5)
SHIFT_FRACTIONS = (0.003, 0.05, 0.61, 1.0)  # of the largest shift
MAX_ERROR_RATIO = 2.0  # in 10 kinds of models without routing, err(p) was at most 1.2 err(0)
MAX_STEP_RATIO = 30.0  # steps of learned and of sinusoidal tables differ by less than 3; of rounded angles, by p / 5
ANGLE_ROUNDING_UNITS = 8.0  # [units of float32 rounding] the error of an angle, as the output shows it
NO_EFFECT = "positions rounded to bfloat16 would not change the output by more than rounding"
BFLOAT16_INTEGER_LIMIT = 256  # bfloat16 does not represent every larger integer


class PositionPrecision(MeasuredLaw):
    """The law of this module."""

    confirm_in_float64 = False  # one of the outputs is in float64
    every_length = False
    of_any_weights = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        reach = position_count(calls)
        places = shifts(reach, calls.default_length, calls.adapter.thresholds)
        replaced = calls.with_low_rank_weights if places else None
        if replaced is not None and may_have_table(calls, reach):
            replaced = None  # the table itself is compared at every shift
        of_weights = replaced is None
        for precision in dtype_modes(calls) if places else ():
            what = f"positions up to {reach - 1} {precision.description}"
            run = partial(_excess_error, reach=reach, precision=precision)
            if not of_weights:
                yield Comparison(f"{what}, the last ones", partial(run, places=places[-1:]))
            yield Comparison(what, partial(run, places=places), of_weights=of_weights)
        if places and _step_is_uneven(replaced or calls, places, reach):
            yield Comparison(
                f"one step of all tokens, at positions up to {reach - 1}", partial(_steps, places=places, reach=reach),
                from_positions=True, of_weights=of_weights,
            )  # fmt: skip

    def control(self, calls: CachedCalls) -> OutputPair:
        return move_second_half(calls)


def shifts(reach: int, tokens: int, thresholds: Sequence[Threshold] = ()) -> list[int]:
    """By how much to shift the second half: odd numbers, the largest one before the last position.

    Also one just past each threshold.
    """
    room = reach - tokens - 1 - reach // BFLOAT16_INTEGER_LIMIT
    past = {t.tokens + 1 | 1 for t in thresholds if NEAR_SHIFTS[-1] < t.tokens < room - 2}
    return sorted(past | {int(part * room) - 1 | 1 for part in SHIFT_FRACTIONS if part * room > NEAR_SHIFTS[-1] + 2})


def _excess_error(
    calls: CachedCalls, *, places: list[int], reach: int, precision: DtypeMode
) -> OutputPair | NotedOutputs:
    """For each shift: 1, and 1 plus the error beyond the bound, relative to a typical output."""
    wide = float64_reference(calls, precision)
    all_shifts = [*NEAR_SHIFTS, *places]
    next_shifts = [place + 1 + place // BFLOAT16_INTEGER_LIMIT for place in places]
    rows = _row_count(calls)  # not of the float64 copy, which may count as a large model where this one does not
    both = outputs_at_shifts(wide, [*all_shifts, *next_shifts], reach, wide.forward_at, rows)
    exact, nearby = both.tensor_split([len(all_shifts)])
    used = outputs_at_shifts(calls, all_shifts, reach, precision.forward, rows)
    if not bool(exact.isfinite().all()) or not bool(used.isfinite().all()):
        return exact, used  # the measurement reports which
    errors = median_relative_differences(exact, used)
    near, error = errors[: len(NEAR_SHIFTS)], errors[len(NEAR_SHIFTS) :]
    bound = (
        MAX_ERROR_RATIO * max(float(near.max()), precision.eps) + ANGLE_ROUNDING_UNITS * torch.tensor(places) * 2.0**-24
    )
    judged = median_relative_differences(exact[len(NEAR_SHIFTS) :], nearby) > bound
    if not bool(judged.any()):
        raise UnsupportedCallError(NO_EFFECT)
    excess = torch.where(judged, error - bound, 0.0).clamp(min=0.0)
    worst = int(excess.argmax())
    note = f"error {float(error[worst]):.2g} at shift {places[worst]}, {float(near.max()):.2g} near the start"
    return NotedOutputs(torch.ones_like(excess), 1 + excess, note)


def _step_is_uneven(calls: CachedCalls, places: list[int], reach: int) -> bool:
    """True if a step far from the start changes too much. Even steps say nothing of the other comparisons."""
    try:
        return isinstance(_steps(calls, places=places, reach=reach), NotedOutputs)
    except Exception:  # noqa: BLE001 - third-party code: a call may fail in any way
        return False


def _steps(calls: CachedCalls, *, places: list[int], reach: int) -> OutputPair | NotedOutputs:
    """The outputs [row, token, feature] before and after the step that changes too much; equal ones if none does."""
    starts = [*range(max(NEAR_SHIFTS)), *places]
    ends = [start + 1 for start in starts]
    rows = _row_count(calls)
    outputs = outputs_at_shifts(calls, [*starts, *ends], reach, calls.forward_at, rows, every_token=True)
    first, second = outputs.tensor_split(2)
    sizes = median_relative_differences(first, second)
    near = float(sizes[: max(NEAR_SHIFTS)].max())
    eps = torch.finfo(calls.weight_dtype).eps
    bound = MAX_STEP_RATIO * max(near, eps) + ANGLE_ROUNDING_UNITS * torch.tensor(starts) * 2.0**-24
    excess = (sizes - bound)[max(NEAR_SHIFTS) :]
    worst = max(NEAR_SHIFTS) + int(excess.argmax())
    if not float(excess.max()) > 0:
        return torch.ones_like(excess), torch.ones_like(excess)
    note = (
        f"the step from shift {starts[worst]} changes them by {float(sizes[worst]):.2g}, the first ones by {near:.2g}"
    )
    before, after = (x[worst].reshape(rows, -1, x.shape[-1]) for x in (first, second))
    return NotedOutputs(before, after, note)


def outputs_at_shifts(
    calls: CachedCalls, places: list[int], reach: int, call: PositionedForward, rows: int, *, every_token: bool = False
) -> Tensor:
    """The outputs [shift, row and token, feature] of the second half of the tokens, shifted by each of these.

    ``every_token``: all tokens are shifted, and the outputs are of all.

    Every call also has rows that end at the last position: frequencies that depend on the largest position of a call,
    or of all calls before it (dynamic scaling), are then the same in the calls that are compared.
    """
    count = calls.default_length
    all_places = torch.tensor([*places, reach - count])
    tokens = torch.cat([calls.sample_tokens(count, rows=rows)] * len(all_places))
    second_half = torch.arange(count) >= count // 2
    moved = all_places.repeat_interleave(rows).unsqueeze(-1) * (second_half | every_token)
    output = call(tokens, calls.adapter.first_position_id + torch.arange(count) + moved).double()
    output = output[:, count // 2 :] if output.dim() == 3 and not every_token else output
    return output.reshape(len(all_places), -1, output.shape[-1])[:-1]


def _row_count(calls: CachedCalls) -> int:
    """The number of rows with equal position ids, over which a median is taken."""
    return ROWS_OF_A_LARGE_MODEL if is_large(calls.adapter.module) else ROWS_FOR_MEDIAN


def median_relative_differences(first: Tensor, second: Tensor) -> Tensor:
    """The median norm [shift] of the differences, relative to the median norm of an output."""
    gap, size = (first - second).norm(dim=-1), first.norm(dim=-1)
    medians: Tensor = gap.median(dim=-1).values / size.median()
    return medians


LAW = PositionPrecision(
    code="OP303",
    name="position_precision",
    statement="Outputs at large positions are as precise as at small ones, in the dtype in use and in bfloat16.",
    trait="keeps its precision at large positions",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Do not round positions: compute what depends on them in float32 or float64 from integers.",
    remedies={
        "rotary": Remedy(
            text="Do not cast frequencies and positions: compute angles in float32 or float64 from integer positions, "
            "and round their cosines and sines only.",
            diff="-angles = position_ids.to(x.dtype) * inv_freq\n+angles = position_ids.double() * inv_freq.double()",
        )
    },
    required_inputs=frozenset({"positions"}),
)
