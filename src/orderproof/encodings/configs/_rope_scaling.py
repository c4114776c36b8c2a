"""Rope parameters as a frequency schedule.

One function per `rope_type` of transformers' modeling_rope_utils.py; each knows its keys, and any other key raises an
error. The schedules document the keys; transformers deviates from them as follows:

    yarn      the attention scaling is m(mscale) / m(mscale_all_dim) only if both are given and not 0, else m(1);
              scores are multiplied by m(mscale_all_dim) ** 2 only in the DeepSeek family
    longrope  one attention scaling for short and long rows; `factor` replaces maximum / original if given
    dynamic   the training length is always max_position_embeddings
"""

from __future__ import annotations

import math
from collections.abc import Callable

from orderproof.encodings import schedules
from orderproof.encodings._frequencies import Schedule
from orderproof.encodings.configs._config_values import (
    Values,
    config_error,
    optional_number,
    required_attribute,
    required_integer,
    required_number,
)

_COMMON_KEYS = frozenset({"rope_type", "type", "rope_theta", "partial_rotary_factor"})


def schedule_of(
    config: object, rope: Values, *, kind: str, scales_scores: bool, other_keys: frozenset[str]
) -> Schedule | None:
    """The schedule of rope parameters with rope_type ``kind``; None for plain frequencies.

    ``scales_scores``: the model's attention multiplies scores by m(mscale_all_dim) ** 2. ``other_keys``: keys that are
    read elsewhere.
    """
    if kind not in _KINDS:
        raise config_error(config, f"expected rope_type to be one of {', '.join(_KINDS)}, got {kind!r}")
    keys, build = _KINDS[kind]
    for key in rope.keys() - keys - _COMMON_KEYS - other_keys:
        raise config_error(config, f"rope_parameters has the key {key!r}, which rope_type {kind!r} does not support")
    return build(config, rope, scales_scores)


def _default(config: object, rope: Values, scales_scores: bool) -> None:  # noqa: FBT001
    del config, rope, scales_scores


def _linear(config: object, rope: Values, scales_scores: bool) -> Schedule:  # noqa: FBT001
    del scales_scores
    return schedules.LinearScaling(required_number(config, rope, "factor"))


def _dynamic(config: object, rope: Values, scales_scores: bool) -> Schedule:  # noqa: FBT001
    del scales_scores
    return schedules.DynamicNTK(
        required_number(config, rope, "factor"), original=int(required_attribute(config, "max_position_embeddings"))
    )


def _yarn(config: object, rope: Values, scales_scores: bool) -> Schedule:  # noqa: FBT001
    factor = required_number(config, rope, "factor")
    mscale, mscale_all_dim = (optional_number(config, rope, name) for name in ("mscale", "mscale_all_dim"))

    def mscale_of(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0

    scaling = optional_number(config, rope, "attention_factor")
    if scaling is None:
        scaling = mscale_of(mscale) / mscale_of(mscale_all_dim) if mscale and mscale_all_dim else mscale_of(1)
    return schedules.Yarn(
        factor,
        required_integer(config, rope, "original_max_position_embeddings"),
        beta_fast=optional_number(config, rope, "beta_fast") or 32.0,
        beta_slow=optional_number(config, rope, "beta_slow") or 1.0,
        mscale_all_dim=(mscale_all_dim or 0.0) if scales_scores else 0.0,
        attention_scaling=scaling,
        truncate=_truncate(config, rope),
    )


def _truncate(config: object, rope: Values) -> bool:
    truncate = rope.get("truncate", True)
    if not isinstance(truncate, bool):
        raise config_error(config, f"expected rope_parameters['truncate'] to be True or False, got {truncate!r}")
    if not truncate and getattr(config, "rope_parameters", {}).get("truncate", True):
        raise config_error(config, "expected truncate at the top level of rope_parameters, got it under a layer type")
    return truncate


def _longrope(config: object, rope: Values, scales_scores: bool) -> Schedule:  # noqa: FBT001
    del scales_scores
    original = required_integer(config, rope, "original_max_position_embeddings")
    maximum = int(required_attribute(config, "max_position_embeddings"))
    scaling, factor = (optional_number(config, rope, name) for name in ("attention_factor", "factor"))
    if scaling is None:
        ratio = maximum / original if factor is None else factor
        scaling = math.sqrt(1 + math.log(ratio) / math.log(original)) if ratio > 1 else 1.0
    divisors = []
    for name in ("short_factor", "long_factor"):
        if not isinstance(rope.get(name), list | tuple):
            raise config_error(
                config, f"expected rope_parameters[{name!r}] to be a list of numbers, got {rope.get(name)!r}"
            )
        divisors.append(tuple(float(divisor) for divisor in rope[name]))
    short, long = divisors
    return schedules.LongRope(short, long, original, maximum, short_mscale=scaling, long_mscale=scaling)


def _llama3(config: object, rope: Values, scales_scores: bool) -> Schedule:  # noqa: FBT001
    del scales_scores
    return schedules.Llama3(
        required_number(config, rope, "factor"),
        low=required_number(config, rope, "low_freq_factor"),
        high=required_number(config, rope, "high_freq_factor"),
        original=required_integer(config, rope, "original_max_position_embeddings"),
    )


def _proportional(config: object, rope: Values, scales_scores: bool) -> Schedule:  # noqa: FBT001
    del scales_scores
    factor = optional_number(config, rope, "factor")
    return schedules.Proportional(
        required_number(config, rope, "partial_rotary_factor"), 1.0 if factor is None else factor
    )


_LENGTH = "original_max_position_embeddings"
_KINDS: dict[str, tuple[frozenset[str], Callable[[object, Values, bool], Schedule | None]]] = {
    "default": (frozenset(), _default),
    "linear": (frozenset({"factor"}), _linear),
    "dynamic": (frozenset({"factor"}), _dynamic),
    "yarn": (
        frozenset(
            {"factor", _LENGTH, "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}
        ),
        _yarn,
    ),
    "longrope": (frozenset({"factor", _LENGTH, "attention_factor", "short_factor", "long_factor"}), _longrope),
    "llama3": (frozenset({"factor", _LENGTH, "low_freq_factor", "high_freq_factor"}), _llama3),
    "proportional": (frozenset({"factor"}), _proportional),
}
