"""Reading configuration values: a missing value raises an error that names it; nothing has a silent default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderproof.errors import EncodingError

Values = Mapping[str, Any]


def config_error(config: object, why: str) -> EncodingError:
    """The error for a configuration that has no encoding here, with the reason."""
    return EncodingError(f"from_hf_config: model type {getattr(config, 'model_type', None)!r}: {why}")


def required_attribute(config: object, name: str) -> Any:
    """The value of a required attribute."""
    value = getattr(config, name, None)
    if value is None:
        raise config_error(config, f"expected a value for {name}, got none")
    return value


def head_width(config: object, shared: str = "hidden_size") -> int:
    """The width of a head: head_dim, or the model's width divided by the number of heads."""
    stated = getattr(config, "head_dim", None)
    if stated is not None:
        return int(stated)
    width, heads = required_attribute(config, shared), required_attribute(config, "num_attention_heads")
    if width % heads:
        raise config_error(config, f"expected {shared} to be a multiple of num_attention_heads={heads}, got {width}")
    return int(width // heads)


def per_layer_value(config: object, layer: int, name: str) -> Any:
    """One layer's value of an attribute with one value per layer."""
    values = required_attribute(config, name)
    if layer >= len(values):
        raise config_error(config, f"expected {name} to have an entry for layer {layer}, it has {len(values)}")
    return values[layer]


def required_number(config: object, rope: Values, name: str) -> float:
    """A required number of the rope parameters."""
    value = rope.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise config_error(config, f"expected rope_parameters[{name!r}] to be a number, got {value!r}")
    return float(value)


def optional_number(config: object, rope: Values, name: str) -> float | None:
    """An optional number of the rope parameters."""
    return None if rope.get(name) is None else required_number(config, rope, name)


def required_integer(config: object, rope: Values, name: str) -> int:
    """A required integer of the rope parameters."""
    value = required_number(config, rope, name)
    if value != int(value):
        raise config_error(config, f"expected rope_parameters[{name!r}] to be an integer, got {value!r}")
    return int(value)
