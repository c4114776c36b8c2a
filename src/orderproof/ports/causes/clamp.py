"""Clamps of the time steps of state-space layers: at other limits, or absent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

ATTRIBUTE = "time_step_limit"  # of a layer: (lowest, highest)
NONE = (0.0, math.inf)
Limits = tuple[float, ...]


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    used = {tuple(getattr(part, ATTRIBUTE)) for part in _layers(reference.model)}
    config = reference.config
    stated = getattr(config, ATTRIBUTE, None)
    lowest, highest = (getattr(config, f"time_step_{end}", None) for end in ("min", "max"))
    options: list[Limits] = [NONE]
    options += [tuple(map(float, stated))] if isinstance(stated, (list, tuple)) else []
    if isinstance(lowest, float) and isinstance(highest, float):
        options += [(lowest, math.inf), (lowest, highest)]
    for limits in dict.fromkeys(options):
        if used and used != {limits}:
            change = Change(prepare=partial(_set_limits, limits=limits))
            yield Candidate("other", "clamp of time steps", _text(min(used)), _text(limits), change)


def _layers(model: Any) -> list[Any]:
    return [part for part in model.modules() if isinstance(getattr(part, ATTRIBUTE, None), (list, tuple))]


def _set_limits(model: Any, limits: Limits) -> None:
    for part in _layers(model):
        setattr(part, ATTRIBUTE, limits)


def _text(limits: Limits) -> str:
    return "none" if limits == NONE else " to ".join(f"{limit:g}" for limit in limits)


CAUSE = Cause("other", 105, _candidates)
