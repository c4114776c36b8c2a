"""The configuration values of `arch:NAME?key=value`: each is honoured by the configuration, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from orderproof.errors import UsageError
from orderproof.models.tiny.proportional_sizes import config_value
from orderproof.registry import did_you_mean

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
LAYER_TYPE_KEYS = ("layer_types", "layers_block_type")  # two names for one list in some families
LAYER_COUNT_KEYS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")


def split_dtype(values: Mapping[str, Any], spec: str) -> tuple[dict[str, Any], torch.dtype]:
    """The values without `dtype`, and the dtype of the weights. Raises `UsageError` for an unknown one."""
    rest = {key: value for key, value in values.items() if key != "dtype"}
    name = values.get("dtype", "float32")
    if name not in DTYPES:
        raise UsageError(f"{spec}: expected a dtype, one of {', '.join(DTYPES)}; got {name!r}")
    return rest, DTYPES[name]


def split_attention(values: Mapping[str, Any], spec: str) -> tuple[dict[str, Any], str | None]:
    """The values without `attn_implementation`, and that value. Raises `UsageError` for an unknown one."""
    rest = {key: value for key, value in values.items() if key != "attn_implementation"}
    name = values.get("attn_implementation")
    if name not in (None, "sdpa", "eager"):
        raise UsageError(f"{spec}: expected attn_implementation sdpa or eager; got {name!r}")
    return rest, name


def with_layer_count(config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the number of layers, if layer types are stated without it."""
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    types = next((values[key] for key in LAYER_TYPE_KEYS if isinstance(values.get(key), list)), None)
    stated = any(renamed.get(key, key) in (*LAYER_COUNT_KEYS, *renamed.values()) and key in values
                 for key in LAYER_COUNT_KEYS)  # fmt: skip
    known = next((key for key in LAYER_COUNT_KEYS if config_value(config, key) is not None), None)
    return dict(values) if types is None or stated or known is None else {**values, known: len(types)}


def check_rope_types(values: Mapping[str, Any], spec: str) -> None:
    """Raise `UsageError` for a rope type that transformers does not have."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    known = {"default", "proportional", *ROPE_INIT_FUNCTIONS}
    for key in ("rope_parameters", "rope_scaling"):
        rope = values.get(key)
        parts = [rope, *rope.values()] if isinstance(rope, dict) else []
        for part in parts:
            name = part.get("rope_type", part.get("type")) if isinstance(part, dict) else None
            if name is not None and name not in known:
                raise UsageError(f"{spec}: transformers has no rope type {name!r}{did_you_mean(str(name), known)}")


def check_honoured(config: Any, values: Mapping[str, Any], spec: str) -> None:
    """Raise `UsageError` if the configuration has another value than the stated one."""
    for key, stated in values.items():
        actual = config_value(config, key)
        if not _honours(actual, stated):
            raise UsageError(
                f"{spec}: {type(config).__name__} does not keep {key}={stated!r}; it has {actual!r}: it may be derived "
                "from another value, so state that one"
            )


def _honours(actual: Any, stated: Any) -> bool:
    """Equal, or a mapping with more entries, or a list with the same pattern of other names."""
    if isinstance(stated, dict) and isinstance(actual, dict):
        return all(key in actual and _honours(actual[key], value) for key, value in stated.items() if key != "type")
    if isinstance(stated, list) and isinstance(actual, (list, tuple)):
        return len(stated) == len(actual) and _pattern(stated) == _pattern(actual)
    return bool(actual == stated)


def _pattern(values: list[Any] | tuple[Any, ...]) -> list[int] | list[Any]:
    """Names of layer types may be replaced by newer ones: only which are equal counts. Other lists are themselves."""
    if not all(isinstance(value, str) for value in values):
        return list(values)
    first = list(dict.fromkeys(values))
    return [first.index(value) for value in values]
