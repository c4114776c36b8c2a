"""Checks of a reference itself in a call: a control, its cache, its roundings, a length that decides something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from orderproof.laws.ports import PortCall, PortLaw
from orderproof.laws.ports.port_law import CallKind
from orderproof.ports.comparison import Profile, profile, rounding, tolerance
from orderproof.ports.engines.engine import Scores
from orderproof.ports.reference import Change, Reference
from orderproof.tolerances import CONTROL_FACTOR

LAST_DIGIT = 2.0**-24


def decisive_call(reference: Reference, law: PortLaw, call: PortCall) -> PortCall:
    """The call, or a shorter one if the rounding of the reference hides every difference in it."""
    shorter: PortCall | None = call
    while shorter is not None:
        limit = tolerance(reference.outputs(shorter), reference.outputs(shorter, double=True))
        if control(reference, shorter, law.first_compared(reference.port_model, shorter)) >= CONTROL_FACTOR * limit:
            return shorter
        shorter = law.shorter_call(shorter)
    return call


def control(reference: Reference, call: PortCall, start: int) -> float:
    """The largest change of the outputs from token ``start`` on if every token is another one, relative."""
    vocabulary = reference.port_model.vocabulary
    rows = tuple(tuple((token + 1) % vocabulary for token in row) for row in call.rows)
    kind: CallKind = "pooled" if call.kind == "pooled" else "prefill"
    other, same = (reference.outputs(PortCall(kind, each)) for each in (rows, call.rows))
    gaps = [abs(a[start:] - b[start:]).max() for a, b in zip(same, other, strict=True) if len(a) > start]
    return float(max(gaps) / max(abs(each).max() for each in same))


def own_cache_difference(reference: Reference, call: PortCall) -> float:
    """The relative difference of the reference in calls with a cache from one call."""
    return rounding(reference.outputs(call), reference.outputs(PortCall("prefill", call.rows)))


def boundary_effect(
    reference: Reference, call: PortCall, changes: Sequence[Change], found: Profile, copies: int
) -> Profile:
    """How far a changed reference moves, token by token, if its arithmetic or its weights move by their last digit.

    The largest of its distances from float64 and from copies with other last digits. Where a change rounds to a coarser
    type, a value next to a boundary of that type makes a difference of its own.
    """
    usual = reference.outputs(call, changes)
    others = [reference.outputs(call, changes, double=True)]
    others += [reference.outputs(call, [*changes, _other_last_digits(seed)]) for seed in range(copies)]
    moved = [[Scores(each.astype(np.float32)) for each in one] for one in others]
    profiles = [profile(each, usual, found.tolerance, start=found.start) for each in moved]
    by_token = map(max, zip(*(each.by_token for each in profiles), strict=True))
    return Profile(tuple(by_token), found.tolerance, found.start)


def _other_last_digits(seed: int) -> Change:
    """Weights with relative changes of at most half the spacing of float32."""

    def move(model: Any) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.is_floating_point():
                    weight.mul_(1 + LAST_DIGIT * (2 * torch.rand(weight.shape, generator=generator) - 1))

    return Change(prepare=move)


def nearer_output(
    reference: Reference, scores: Sequence[Scores], call: PortCall, found: Profile
) -> tuple[Profile, str]:
    """The profile against the output that an engine equals, of calls with a cache or of one call, and which one it is.

    A port that gives either of two outputs of the reference computes no other model.
    """
    if found.first is None:
        return found, "the calls with a cache"
    whole = reference.outputs(PortCall("prefill", call.rows), double=True)
    return profile(scores, whole, found.tolerance, start=found.start), "the one call"
