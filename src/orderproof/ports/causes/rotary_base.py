"""The rotary base: another one than config.json states, such as the default of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from orderproof.ports.causes.cause import Candidate, Cause, Defaults, ropes, with_rope
from orderproof.ports.reference import Reference

DEFAULT_KEYS = ("rope_theta", "rotary_emb_base", "rope_base", "rope_local_base_freq", "rope_global_base_freq")
USUAL_BASES = (10_000.0, 1_000_000.0, 500_000.0, 100_000.0, 5_000_000.0, 10_000_000.0, 150_000.0, 50_000.0)


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    found = ropes(reference.config)
    own = [defaults[key] for key in DEFAULT_KEYS if isinstance(defaults.get(key), (int, float))]
    others = [rope.get("rope_theta") for rope in found.values()]
    bases = dict.fromkeys(float(base) for base in (*own, *others, *USUAL_BASES) if base)
    for base in bases:
        which = f"{base:g}, its own default" if base in own else f"{base:g}"
        for kind, rope in found.items():
            if rope.get("rope_theta") not in (None, base):
                setting = f"rope_parameters.{kind}.rope_theta" if kind else "rope_parameters.rope_theta"
                change = with_rope(partial(_with_base, base=base), only=kind)
                yield Candidate("rotary base", setting, f"{rope['rope_theta']:g}", which, change, likely=base in own)
        if len(found) > 1:
            change = with_rope(partial(_with_base, base=base))
            yield Candidate("rotary base", "rope_parameters.*.rope_theta", "one for each layer type", which, change)


def _with_base(rope: dict[str, Any], base: float) -> dict[str, Any]:
    return {**rope, "rope_theta": base}


CAUSE = Cause("rotary base", 20, _candidates)
