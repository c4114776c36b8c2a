"""Tiny versions of an architecture, the tiniest first, each gentler than the one before.

1. fixed small sizes (`shrinking`) and short stretches;
2. every width divided by the same number, less and less (`scaling`), and short stretches;
3. the same, the stretches as long as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderproof.subjects import scaling, shrinking
from orderproof.subjects.exceptions import EXCEPTIONS
from orderproof.subjects.stretches import short


def ladder(config: Any, given: Mapping[str, Any], *, faithful: bool = False) -> Iterator[dict[str, Any]]:
    """Configuration values of tiny versions; values given by the user win.

    With ``faithful`` heads share keys as they do in the configuration, so that a twin takes the same branches.
    """
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    chosen = {renamed.get(key, key): value for key, value in given.items()}
    known = {**EXCEPTIONS.get(config.model_type, {}), **chosen}
    small = {**shrinking.shrunk(config, given, faithful=faithful), **known}
    steps = [(by, grid) for by in scaling.divisors(config) for grid in scaling.grids(config) or (0,)]
    brief = short(config)
    large = scaling.has_image_part(config)  # the fixed sizes are those of the whole: its parts would see large images
    for stretched in [brief, {}] if brief else [brief]:
        if not large:
            yield _with_heads(config, {**small, **stretched, **known})
        for by, grid in steps:
            if (narrow := _narrow(config, by, grid)) is not None:
                yield _with_heads(config, {**narrow, **stretched, **known})
        if large:
            yield _with_heads(config, {**small, **stretched, **known})


def _narrow(config: Any, by: int, grid: int) -> dict[str, Any] | None:
    """The values of a narrower version; None where the configuration of a part refuses them."""
    try:
        return scaling.scaled(config, by, grid)
    except Exception:  # noqa: BLE001 - a third-party constructor: anything may come
        return None


def _with_heads(config: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The same, with the width of a head where the configuration leaves it open: some models do not work it out."""
    if config.to_dict().get("head_dim", 0) is None and "head_dim" not in values:
        width, heads = (values.get(key, scaling.read(config, key)) for key in ("hidden_size", "num_attention_heads"))
        if isinstance(width, int) and isinstance(heads, int) and heads:
            return {**values, "head_dim": width // heads}
    return values
