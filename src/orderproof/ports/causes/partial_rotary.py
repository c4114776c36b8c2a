"""Partial rotation: another fraction of the features of a head is rotated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from orderproof.ports.causes.cause import Candidate, Cause, Defaults, ropes, with_rope
from orderproof.ports.reference import Reference

KEY = "partial_rotary_factor"
FRACTIONS = (1.0, 0.5, 0.25, 0.75, 0.4, 0.2)


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    stated = {float(rope[KEY]) for rope in ropes(reference.config).values() if rope.get(KEY)}
    own = [defaults[key] for key in (KEY, "rope_pct", "rotary_pct") if isinstance(defaults.get(key), float)]
    for fraction in dict.fromkeys((*own, *FRACTIONS)) if stated else ():
        if stated != {fraction}:
            which = f"{fraction:g}, its own default" if fraction in own else f"{fraction:g}"
            change = with_rope(partial(_with_fraction, fraction=fraction))
            yield Candidate(
                "partial rotary",
                f"rope_parameters.{KEY}",
                f"{min(stated):g}",
                which,
                change,
                likely=fraction in (*own, 1.0),
            )


def _with_fraction(rope: dict[str, Any], fraction: float) -> dict[str, Any]:
    return {**rope, KEY: fraction}


CAUSE = Cause("partial rotary", 30, _candidates)
