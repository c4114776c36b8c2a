"""The thresholds of a transformers model: numbers of tokens at which it may change its behaviour.

Spans (windows, chunks, blocks, convolutions), stated and original context lengths, and sizes of tables, from the
configuration and the modules. A tiny model has short ones: `short_threshold_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from orderproof.adapter import Threshold
from orderproof.models.hf.context_spans import context_spans
from orderproof.models.module_thresholds import module_thresholds
from orderproof.models.own_errors import raise_own_error

SHORT_ORIGINAL_LENGTH = 16  # [tokens] in a tiny model; above its windows, below its stated length
_LENGTH_KEY = re.compile(
    r"^(original_)?max_position_embeddings$|^(n_positions|context_length|max_seq_len|max_seq_length|seq_length)$"
    r"|^max_(source|target|encoder_position|decoder_position)_?(positions|embeddings)$|^model_max_length$|^floor_scale$"
)
_ORIGINAL_LENGTH_KEYS = ("original_max_position_embeddings", "floor_scale")


def thresholds(model: nn.Module, config: Any, table_size: int | None) -> tuple[Threshold, ...]:
    """The thresholds of a model, the smallest first."""
    usual = _default_values(config)
    found = [Threshold(key, size, usual.get(key)) for key, size in _config_values(config).items()]
    found += module_thresholds(model)
    if table_size is not None:
        found.append(Threshold("the position table", table_size))
    return tuple(sorted(dict.fromkeys(found), key=lambda threshold: threshold.tokens))


def short_threshold_values(config: Any) -> dict[str, Any]:
    """Configuration values of a tiny model that shorten its original context lengths."""
    values: dict[str, Any] = {}
    for key in _ORIGINAL_LENGTH_KEYS:
        if isinstance(size := getattr(config, key, None), int) and size > SHORT_ORIGINAL_LENGTH:
            values[key] = SHORT_ORIGINAL_LENGTH
    rope = getattr(config, "rope_parameters", None)
    if isinstance(rope, Mapping) and "mrope_section" not in rope and (short := _with_short_lengths(rope)) != rope:
        values["rope_parameters"] = short
    return values


def _with_short_lengths(rope: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _with_short_lengths(value) if isinstance(value, Mapping)
        else min(value, SHORT_ORIGINAL_LENGTH) if key in _ORIGINAL_LENGTH_KEYS and isinstance(value, int)
        else value
        for key, value in rope.items()
    }  # fmt: skip


def _config_values(config: Any) -> dict[str, int]:
    """The thresholds in a configuration by key; those within a rope configuration come last."""
    values = dict(context_spans(config))
    for key, value in _flat_items(config.to_dict()):
        if _LENGTH_KEY.search(key) and isinstance(value, int) and not isinstance(value, bool) and value > 1:
            values.setdefault(key, value)
    return values


def _flat_items(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The items of a configuration and of its rope configuration; other parts are other models."""
    for key, value in values.items():
        if isinstance(value, Mapping) and (key.startswith("rope") or key.endswith("_attention")):
            yield from _flat_items(value)
        else:
            yield key, value


def _default_values(config: Any) -> dict[str, int]:
    """The same values in the default configuration of the class; empty if it has none."""
    try:
        return _config_values(type(config)())
    except Exception as error:  # noqa: BLE001 - third-party code: a configuration may have no default
        raise_own_error(error)
        return {}
