"""Reading a configuration: a value that is there, or an error that names it. Nothing has a silent default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderproof.errors import EncodingError

Values = Mapping[str, Any]


def refusal(config: object, why: str) -> EncodingError:
    """The error that says why a configuration has no encoding here."""
    return EncodingError(f"from_hf_config: model type {getattr(config, 'model_type', None)!r}: {why}")


def attribute(config: object, name: str) -> Any:
    """The value of an attribute that must be there."""
    value = getattr(config, name, None)
    if value is None:
        raise refusal(config, f"expected a value for {name}, got none")
    return value


def head_width(config: object, shared: str = "hidden_size") -> int:
    """The width of a head: stated, or the model's width shared among the heads."""
    stated = getattr(config, "head_dim", None)
    if stated is not None:
        return int(stated)
    width, heads = attribute(config, shared), attribute(config, "num_attention_heads")
    if width % heads:
        raise refusal(config, f"expected {shared} to be a multiple of num_attention_heads={heads}, got {width}")
    return int(width // heads)


def entry(config: object, layer: int, name: str) -> Any:
    """The value for one layer from an attribute that has one for each."""
    values = attribute(config, name)
    if layer >= len(values):
        raise refusal(config, f"expected {name} to have an entry for layer {layer}, it has {len(values)}")
    return values[layer]


def number(config: object, rope: Values, name: str) -> float:
    """A number that the rope parameters must have."""
    value = rope.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(config, f"expected rope_parameters[{name!r}] to be a number, got {value!r}")
    return float(value)


def optional_number(config: object, rope: Values, name: str) -> float | None:
    """A number that the rope parameters may have."""
    return None if rope.get(name) is None else number(config, rope, name)


def whole(config: object, rope: Values, name: str) -> int:
    """A whole number that the rope parameters must have."""
    value = number(config, rope, name)
    if value != int(value):
        raise refusal(config, f"expected rope_parameters[{name!r}] to be a whole number, got {value!r}")
    return int(value)
