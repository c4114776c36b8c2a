"""Rope scaling: dropped, or with another factor than config.json states."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from orderproof.ports.causes.cause import Candidate, Cause, Defaults, ropes, with_rope
from orderproof.ports.reference import Reference

KEPT = ("rope_theta", "partial_rotary_factor")
ORIGINAL = "original_max_position_embeddings"
USUAL_VALUES: dict[str, tuple[Any, ...]] = {  # of keys of the rope parameters; None: the key is absent
    "factor": (1.0,),
    "attention_factor": (None, 1.0),
    "mscale": (None, 0.0, 1.0),
    "mscale_all_dim": (None, 0.0, 1.0),
    "beta_fast": (None, 32.0),
    "beta_slow": (None, 1.0),
    "low_freq_factor": (1.0,),
    "high_freq_factor": (4.0,),
    "truncate": (None, True, False),
    "llama_4_scaling_beta": (0.0,),  # of the temperature of positions
    ORIGINAL: (None, 4096, 8192),
}
SCALED_TYPES = ("linear", "dynamic", "yarn")


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    found = [rope for rope in ropes(reference.config).values() if rope.get("rope_type", "default") != "default"]
    if not found:
        return
    kind, rope = found[0]["rope_type"], found[0]

    def candidate(setting: str, stated: Any, assumed: str, **values: Any) -> Candidate:
        change = with_rope(partial(_with_values, values=values))
        return Candidate("scaling", f"rope_parameters.{setting}", str(stated), assumed, change)

    yield Candidate(
        "scaling", "rope_parameters.rope_type", kind, "no scaling", with_rope(_without_scaling), likely=True
    )
    longest = getattr(reference.config, "max_position_embeddings", None)
    for key, usual in {**USUAL_VALUES, ORIGINAL: (longest, *USUAL_VALUES[ORIGINAL])}.items():
        for value in usual:
            if rope.get(key) != value and (key in rope or key in ("attention_factor", "truncate")):
                assumed = "absent" if value is None else str(value)
                yield candidate(key, rope.get(key, "absent"), assumed, **{key: value})
    if "short_factor" in rope:
        yield candidate("long_factor", "as stated", "the short factors", long_factor=rope["short_factor"])
        yield candidate("short_factor", "as stated", "the long factors", short_factor=rope["long_factor"])
        same = {"short_factor": rope["long_factor"], "attention_factor": 1.0}
        yield candidate("short_factor", "as stated", "the long factors, attention_factor 1", **same)
    for other in SCALED_TYPES:
        if other != kind and "factor" in rope:
            values = {"rope_type": other, ORIGINAL: rope.get(ORIGINAL) or longest}
            yield candidate("rope_type", kind, other, **values)


def _without_scaling(rope: dict[str, Any]) -> dict[str, Any]:
    return {"rope_type": "default", **{key: rope[key] for key in KEPT if key in rope}}


def _with_values(rope: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    if rope.get("rope_type", "default") == "default":
        return rope
    return {key: value for key, value in {**rope, **values}.items() if value is not None}


CAUSE = Cause("scaling", 40, _candidates)
