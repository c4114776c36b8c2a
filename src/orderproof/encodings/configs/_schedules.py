"""Rope parameters as a frequency schedule.

One function for each `rope_type` of transformers' modeling_rope_utils.py; each knows its keys, and any other key is an
error. What the keys mean is in the schedules themselves; here stands only where transformers deviates from them:

    yarn      the gain is m(mscale) / m(mscale_all_dim) only where both are given and not 0, else m(1);
              scores are multiplied by m(mscale_all_dim) ** 2 in the DeepSeek family alone
    longrope  one gain for short and long rows; `factor` stands for maximum / original where it is given
    dynamic   the trained length is max_position_embeddings, whatever else is said
"""

from __future__ import annotations

import math
from collections.abc import Callable

from orderproof.encodings import schedules
from orderproof.encodings._frequencies import Schedule
from orderproof.encodings.configs._read import Values, attribute, number, optional_number, refusal, whole

_ALWAYS = frozenset({"rope_type", "type", "rope_theta", "partial_rotary_factor"})


def schedule_of(config: object, rope: Values, *, kind: str, sharpens: bool, also: frozenset[str]) -> Schedule | None:
    """The schedule of rope parameters whose rope_type is ``kind``; None for plain frequencies.

    ``sharpens``: the model's attention multiplies scores by m(mscale_all_dim) ** 2. ``also``: keys that somebody else
    reads.
    """
    if kind not in _KINDS:
        raise refusal(config, f"expected rope_type to be one of {', '.join(_KINDS)}, got {kind!r}")
    keys, build = _KINDS[kind]
    for key in rope.keys() - keys - _ALWAYS - also:
        raise refusal(config, f"rope_parameters has the key {key!r}, which rope_type {kind!r} does not know")
    return build(config, rope, sharpens)


def _default(config: object, rope: Values, sharpens: bool) -> None:  # noqa: FBT001
    del config, rope, sharpens


def _linear(config: object, rope: Values, sharpens: bool) -> Schedule:  # noqa: FBT001
    del sharpens
    return schedules.Linear(number(config, rope, "factor"))


def _dynamic(config: object, rope: Values, sharpens: bool) -> Schedule:  # noqa: FBT001
    del sharpens
    return schedules.DynamicNTK(
        number(config, rope, "factor"), original=int(attribute(config, "max_position_embeddings"))
    )


def _yarn(config: object, rope: Values, sharpens: bool) -> Schedule:  # noqa: FBT001
    factor = number(config, rope, "factor")
    mscale, every = (optional_number(config, rope, name) for name in ("mscale", "mscale_all_dim"))

    def sharpen(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0

    gain = optional_number(config, rope, "attention_factor")
    if gain is None:
        gain = sharpen(mscale) / sharpen(every) if mscale and every else sharpen(1)
    return schedules.Yarn(
        factor,
        whole(config, rope, "original_max_position_embeddings"),
        beta_fast=optional_number(config, rope, "beta_fast") or 32.0,
        beta_slow=optional_number(config, rope, "beta_slow") or 1.0,
        mscale_all_dim=(every or 0.0) if sharpens else 0.0,
        gain=gain,
        truncate=_truncate(config, rope),
    )


def _truncate(config: object, rope: Values) -> bool:
    found = rope.get("truncate", True)
    if not isinstance(found, bool):
        raise refusal(config, f"expected rope_parameters['truncate'] to be True or False, got {found!r}")
    if not found and getattr(config, "rope_parameters", {}).get("truncate", True):
        raise refusal(
            config, "truncate stands under a type of layer; transformers reads it at the top of rope_parameters only"
        )
    return found


def _longrope(config: object, rope: Values, sharpens: bool) -> Schedule:  # noqa: FBT001
    del sharpens
    original = whole(config, rope, "original_max_position_embeddings")
    maximum = int(attribute(config, "max_position_embeddings"))
    gain, factor = (optional_number(config, rope, name) for name in ("attention_factor", "factor"))
    if gain is None:
        ratio = maximum / original if factor is None else factor
        gain = math.sqrt(1 + math.log(ratio) / math.log(original)) if ratio > 1 else 1.0
    divisors = []
    for name in ("short_factor", "long_factor"):
        if not isinstance(rope.get(name), list | tuple):
            raise refusal(config, f"expected rope_parameters[{name!r}] to be a list of numbers, got {rope.get(name)!r}")
        divisors.append(tuple(float(divisor) for divisor in rope[name]))
    short, long = divisors
    return schedules.LongRope(short, long, original, maximum, short_gain=gain, long_gain=gain)


def _llama3(config: object, rope: Values, sharpens: bool) -> Schedule:  # noqa: FBT001
    del sharpens
    return schedules.Llama3(
        number(config, rope, "factor"),
        low=number(config, rope, "low_freq_factor"),
        high=number(config, rope, "high_freq_factor"),
        original=whole(config, rope, "original_max_position_embeddings"),
    )


def _proportional(config: object, rope: Values, sharpens: bool) -> Schedule:  # noqa: FBT001
    del sharpens
    factor = optional_number(config, rope, "factor")
    return schedules.Proportional(number(config, rope, "partial_rotary_factor"), 1.0 if factor is None else factor)


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
