"""Calls that show whether an argument is a padding mask, and how it marks pads.

A mask hides a token if replacing that token then changes no output of other tokens, and does where all tokens are real.
It weakens a token if replacing it then changes other outputs less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from orderproof.models.module_calls import Call, ModuleCalls
from orderproof.models.own_errors import raise_own_error
from orderproof.models.roles.mask_argument import Mask, PaddingMask
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.recording.restored_state import restored_state
from orderproof.seeded_random import seeded_random
from orderproof.time_limit import TimeLimitExceeded, time_limit

MAX_SECONDS = 10.0  # of all calls that look for a mask
WEAKER = 0.9  # a mask weakens a token if replacing it changes outputs less than this part of what it does otherwise
LEAST_TOKENS = 5  # of a call that has pads at two places
ROUNDING = 1e-6  # relative; what a hidden token may change in float32


def first_that_hides(calls: ModuleCalls, candidates: Iterable[Mask], call: Call) -> Mask | None:
    """The first mask that hides tokens in calls; None too if they take longer than `MAX_SECONDS` together."""
    try:
        with time_limit(MAX_SECONDS):
            return next((mask for mask in candidates if _hides_a_token(calls, mask, call)), None)
    except TimeLimitExceeded:
        return None


def _hides_a_token(calls: ModuleCalls, mask: PaddingMask, call: Call) -> bool:
    """True if replacing a token changes other outputs where all tokens are real, and none where it is a pad.

    A mask without pads with which an output is NaN is read the other way round: it hides every token.
    """
    pairs = _outputs_of_replaced(calls, mask, call)
    if pairs is None or any(x.isnan().any() for x in pairs[0][0]):
        return False
    return _differ(*pairs[0]) and not _differ(*pairs[1])


def weakening_mask(calls: ModuleCalls, candidates: Iterable[Mask], call: Call) -> Mask | None:
    """The mask with which replacing a pad changes other outputs least, and less than without pads; None if none does.

    A faulty module may leave a mask out of a part of itself. None too if calls take longer than `MAX_SECONDS`.
    """
    found: list[tuple[float, Mask]] = []
    try:
        with time_limit(MAX_SECONDS):
            for mask in candidates:
                pairs = _outputs_of_replaced(calls, mask, call)
                seen, unseen = (0.0, 0.0) if pairs is None else (_distance(*pair) for pair in pairs)
                if unseen < WEAKER * seen:
                    found.append((unseen / seen, mask))
    except TimeLimitExceeded:
        return None
    return min(found, key=lambda one: one[0])[1] if found else None


def reads_only_the_number(calls: ModuleCalls, mask: Mask, call: Call) -> bool:
    """True if a mask with a pad at another place gives the same outputs, and one without pads gives others."""
    none, last, early = _outputs_with_pads(calls, mask, call, (slice(0), slice(-2, None), slice(1, 3)))
    return bool(none) and _differ(none, last) and not _differ(last, early)


def gives_nan_on_the_left(calls: ModuleCalls, mask: Mask, call: Call) -> bool:
    """True if an output is NaN with pads on the left, and is not with as many on the right: a token sees no key."""
    left, right = _outputs_with_pads(calls, mask, call, (slice(2), slice(-2, None)))
    return any(bool(x.isnan().any()) for x in left) and not any(bool(x.isnan().any()) for x in right)


def _outputs_with_pads(calls: ModuleCalls, mask: Mask, call: Call, pads: Sequence[slice]) -> list[list[Tensor]]:
    """The outputs with pads at each of these places; empty if no call of the module with pads can be made."""
    inputs = call.inputs()
    first = next(place for place, axis in enumerate(call.examples.axes) if axis is not None)
    axis = call.examples.axes[first]
    none: list[list[Tensor]] = [[] for _ in pads]
    if axis not in (0, 1) or inputs[first].dim() < 2 or call.tokens < LEAST_TOKENS:
        return none
    masks = [torch.ones(inputs[first].shape[1 - axis], call.tokens, dtype=torch.long) for _ in pads]
    for values, places in zip(masks, pads, strict=True):
        values[:, places] = 0
    try:
        with torch.no_grad(), restored_state(calls.module, calls.state):
            return [_outputs(calls.module, inputs, (mask, each), (axis, call.tokens)) for each in masks]
    except SystemExit:
        return none
    except Exception as error:  # noqa: BLE001 - the user's forward refuses a mask of this form
        raise_own_error(error)
        return none


def accepts(calls: ModuleCalls, mask: PaddingMask, call: Call) -> bool:
    """True if a module takes a mask without pads."""
    inputs = call.inputs()
    first = next(place for place, axis in enumerate(call.examples.axes) if axis is not None)
    axis = call.examples.axes[first]
    assert axis is not None
    everywhere = torch.ones(inputs[first].shape[1 - axis], call.tokens, dtype=torch.long)
    try:
        with torch.no_grad(), restored_state(calls.module, calls.state):
            _outputs(calls.module, inputs, (mask, everywhere), (axis, 0))
    except SystemExit:
        return False
    except Exception as error:  # noqa: BLE001 - the user's forward refuses a mask of this form
        raise_own_error(error)
        return False
    return True


def _outputs_of_replaced(
    calls: ModuleCalls, mask: PaddingMask, call: Call
) -> list[tuple[list[Tensor], list[Tensor]]] | None:
    """The other outputs before and after a token is replaced: as a real token, and as a pad; None without any."""
    inputs, others = call.inputs(0), call.inputs(1)
    first = next(place for place, axis in enumerate(call.examples.axes) if axis is not None)
    axis = call.examples.axes[first]
    if axis not in (0, 1) or inputs[first].dim() < 2 or inputs[first].shape[axis] < 2:
        return None
    rows, length = inputs[first].shape[1 - axis], inputs[first].shape[axis]
    place = length - 1 if mask.right_only else length // 2
    replaced = inputs[first].clone()
    replaced.select(axis, place).copy_(others[first].select(axis, place))
    both = (inputs, (*inputs[:first], replaced, *inputs[first + 1 :]))
    everywhere = torch.ones(rows, length, dtype=torch.long)
    hidden = everywhere.clone()
    hidden[:, place] = 0
    found = []
    try:
        with torch.no_grad(), restored_state(calls.module, calls.state):
            for values in (everywhere, hidden):
                before, after = (_outputs(calls.module, each, (mask, values), (axis, place)) for each in both)
                found.append((before, after))
    except SystemExit:
        return None
    except Exception as error:  # noqa: BLE001 - the user's forward refuses a mask of this form
        raise_own_error(error)
        return None
    return found if found[1][0] else None


def _outputs(
    module: nn.Module, inputs: tuple[Tensor, ...], given: tuple[PaddingMask, Tensor], left_out: tuple[int, int]
) -> list[Tensor]:
    """The outputs of a call with rows and tokens without those of one token; those with rows, or all, if none has both.

    ``left_out`` is the axis of tokens, 0 or 1, and the place of the token.
    """
    mask, values = given
    axis, place = left_out
    with seeded_random(0):
        found = leaves_by_name(module(*(x.clone() for x in inputs), **{mask.name: mask.value(values)})).values()
    kept = torch.arange(values.shape[1]) != place
    sizes = values.shape if axis == 1 else values.shape[::-1]
    numbers = [x.double() for x in found if isinstance(x, Tensor) and x.is_floating_point()]
    of_tokens = [x.index_select(axis, kept.nonzero().flatten()) for x in numbers if x.shape[:2] == sizes]
    return of_tokens or [x for x in numbers if len(values) in x.shape[:2]] or numbers


def _distance(first: list[Tensor], second: list[Tensor]) -> float:
    """The largest relative difference of outputs; infinity if their shapes differ."""
    pairs = list(zip(first, second, strict=True))
    if any(x.shape != y.shape for x, y in pairs):
        return float("inf")
    return max((float((x - y).abs().max() / y.abs().max()) for x, y in pairs), default=0.0)


def _differ(first: list[Tensor], second: list[Tensor]) -> bool:
    """True if an output differs in its shape or by more than rounding, or is not finite."""
    pairs = zip(first, second, strict=True)
    return any(x.shape != y.shape or not (x - y).abs().max() <= ROUNDING * y.abs().max() for x, y in pairs)
