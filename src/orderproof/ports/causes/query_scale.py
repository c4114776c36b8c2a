"""The scale of scores from the width of a head, where the configuration states another one: scores = width^-1/2 q k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

TOLERANCE = 1e-6  # relative


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    used = sorted({part.scaling for part, own in _attentions(reference.model) if _differ(part.scaling, own)})
    if used:
        change, own = Change(prepare=_scale_by_width), "from the width of a head"
        yield Candidate("other", "scale of scores", f"{used[0]:g}", own, change, likely=True)


def _attentions(model: Any) -> list[tuple[Any, float]]:
    """The attention modules with a scale and a width of their heads, and the scale that belongs to the width."""
    parts = [part for part in model.modules() if isinstance(getattr(part, "scaling", None), float)]
    widths = [(part, getattr(part, "head_dim", None)) for part in parts]
    return [(part, width**-0.5) for part, width in widths if isinstance(width, int) and width > 0]


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > TOLERANCE * other


def _scale_by_width(model: Any) -> None:
    for part, own in _attentions(model):
        part.scaling = own


CAUSE = Cause("other", 106, _candidates)
