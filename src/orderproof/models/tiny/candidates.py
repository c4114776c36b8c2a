"""Candidate configurations of a tiny model, the smallest first.

1. fixed small sizes (`fixed_sizes`) and short context spans;
2. every width divided by the same number, in decreasing order (`proportional_sizes`), and short context spans;
3. the same with the original context spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderproof.models.hf.context_spans import short_span_values
from orderproof.models.hf.thresholds import short_threshold_values
from orderproof.models.tiny import fixed_sizes, proportional_sizes
from orderproof.models.tiny.overrides import SIZE_OVERRIDES


def tiny_config_candidates(
    config: Any, overrides: Mapping[str, Any], *, keep_kv_groups: bool = False
) -> Iterator[dict[str, Any]]:
    """Configuration values of tiny models; ``overrides`` take precedence.

    With ``keep_kv_groups`` heads share keys as in the configuration, so that a twin takes the same branches.
    """
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    chosen = {renamed.get(key, key): value for key, value in overrides.items()}
    own = {renamed.get(key, key): value for key, value in SIZE_OVERRIDES.get(config.model_type, {}).items()}
    known = {**own, **chosen}
    small = {**fixed_sizes.tiny_config_values(config, overrides, keep_kv_groups=keep_kv_groups), **known}
    steps = [
        (divisor, grid)
        for divisor in proportional_sizes.width_divisors(config)
        for grid in proportional_sizes.image_grid_sides(config) or (0,)
    ]
    short = {**short_span_values(config), **short_threshold_values(config)}
    fixed_last = proportional_sizes.has_image_part(config)  # fixed sizes do not reach the image sizes of components
    for spans in [short, {}] if short else [short]:
        if not fixed_last:
            yield _with_head_dim(config, {**small, **spans, **known})
        for divisor, grid in steps:
            if (narrow := _proportional_values(config, divisor, grid)) is not None:
                yield _with_head_dim(config, {**narrow, **spans, **known})
        if fixed_last:
            yield _with_head_dim(config, {**small, **spans, **known})


def _proportional_values(config: Any, divisor: int, grid: int) -> dict[str, Any] | None:
    """The values of a narrower model; None if the configuration of a component refuses them."""
    try:
        return proportional_sizes.proportional_values(config, divisor, grid)
    except Exception:  # noqa: BLE001 - a third-party constructor: anything may come
        return None


def _with_head_dim(config: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The same values with `head_dim`, if the configuration leaves it open; some models do not derive it."""
    if config.to_dict().get("head_dim", 0) is None and "head_dim" not in values:
        width, heads = (
            values.get(key, proportional_sizes.config_value(config, key))
            for key in ("hidden_size", "num_attention_heads")
        )
        if isinstance(width, int) and isinstance(heads, int) and heads:
            return {**values, "head_dim": width // heads}
    return values
