"""Partial rotation: another fraction of the features of a head is rotated."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import torch

from orderproof.models.hf.export_patches import patch_attribute
from orderproof.ports.causes.cause import Candidate, Cause, Defaults, ropes, with_rope
from orderproof.ports.causes.rotary_layout import rotary_functions
from orderproof.ports.reference import Reference

KEY = "partial_rotary_factor"
FRACTIONS = (1.0, 0.5, 0.25, 0.75, 0.4, 0.2)


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    found = [rope for rope in ropes(reference.config).values() if "rope_theta" in rope]
    stated = {float(rope.get(KEY) or 1.0) for rope in found}
    own = [defaults[key] for key in (KEY, "rope_pct", "rotary_pct") if isinstance(defaults.get(key), float)]
    text = f"{min(stated):g}" if any(rope.get(KEY) for rope in found) else "absent"
    for fraction in dict.fromkeys((*own, *FRACTIONS)) if stated else ():
        if stated != {fraction}:
            which = f"{fraction:g}, its own default" if fraction in own else f"{fraction:g}"
            change = replace(with_rope(partial(_with_fraction, fraction=fraction)), patch=_rotate_first_features)
            yield Candidate(
                "partial rotary", f"rope_parameters.{KEY}", text, which, change, likely=fraction in (*own, 1.0)
            )


def _with_fraction(rope: dict[str, Any], fraction: float) -> dict[str, Any]:
    return {**rope, KEY: fraction}


def _rotate_first_features(model: Any) -> AbstractContextManager[object]:
    """Functions that rotate whole heads rotate as many features as their tables have, and keep the others."""
    stack, module = ExitStack(), sys.modules[type(model).__module__]
    for name, function in rotary_functions(model).items():
        stack.enter_context(patch_attribute(module, name, _in_part(function)))
    return stack


def _in_part(rotate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(rotate)
    def rotate_in_part(query: Any, key: Any, cos: Any, *rest: Any, **options: Any) -> Any:
        try:
            return rotate(query, key, cos, *rest, **options)
        except RuntimeError:  # the table is narrower than a head
            width = cos.shape[-1]
            turned = rotate(query[..., :width], key[..., :width], cos, *rest, **options)
            pairs = zip(turned, (query, key), strict=True)
            return tuple(torch.cat([first, whole[..., width:]], dim=-1) for first, whole in pairs)

    return rotate_in_part


CAUSE = Cause("partial rotary", 30, _candidates)
