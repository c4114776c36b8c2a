"""Checks of a reference itself in a call: the size of a control, its own cache, a length that decides something."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.laws.ports import PortCall, PortLaw
from orderproof.ports.comparison import Profile, profile, rounding, tolerance
from orderproof.ports.engines.engine import Scores
from orderproof.ports.reference import Reference
from orderproof.tolerances import CONTROL_FACTOR


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
    other = reference.outputs(PortCall("prefill", rows))
    same = reference.outputs(PortCall("prefill", call.rows))
    gaps = [abs(a[start:] - b[start:]).max() for a, b in zip(same, other, strict=True) if len(a) > start]
    return float(max(gaps) / max(abs(each).max() for each in same))


def own_cache_difference(reference: Reference, call: PortCall) -> float:
    """The relative difference of the reference in calls with a cache from one call."""
    return rounding(reference.outputs(call), reference.outputs(PortCall("prefill", call.rows)))


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
