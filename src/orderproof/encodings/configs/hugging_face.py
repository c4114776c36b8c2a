"""The encoding of a Hugging Face transformers configuration.

    encoding = from_hf_config(AutoConfig.from_pretrained(...), layer=3)

The result computes the same function as the model's layer, with float64 angles instead of float32: the tests compare
it with the rotary module of every architecture in transformers. Anything uncertain is rejected with one line: an
unlisted model type, an unknown rope_type or key, a configuration of several models.
For latent attention (DeepSeek) the encoding is that of the rotated part of a head, with qk_rope_head_dim features.
Learned tables and biases are initialized randomly, with the shapes of the model's parameters.
If a model's score scale is not 1 / sqrt(head_width) (T5's is 1), the caller must pass it to `attention`.
Source: transformers 5.23, modeling_rope_utils.py and the modeling code of each model.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, get_args

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.configs._config_values import config_error
from orderproof.encodings.configs._model_types import ROPE_MODEL_TYPES
from orderproof.encodings.configs._non_rope import NON_ROPE_BUILDERS
from orderproof.encodings.configs._rotary import rotary_of
from orderproof.encodings.configs._vision_and_audio import LAYERS_IN_STAGES, VISION_BUILDERS, Part, whisper
from orderproof.errors import EncodingError

_BUILDERS = NON_ROPE_BUILDERS | VISION_BUILDERS


def from_hf_config(config: object, layer: int = 0, *, part: Part | None = None) -> PositionalEncoding:
    """The encoding of one layer, counted from 0, of the model with this configuration.

    ``config`` is a transformers configuration, or the dictionary of a config.json, which transformers then parses. It
    is not changed. ``part`` is for Whisper, whose configuration is one of an encoder and a decoder. Raises
    `EncodingError` if the encoding is not certain.
    """
    if type(layer) is not int or layer < 0:
        raise EncodingError(f"from_hf_config: layer must be an integer, 0 or more, got {layer!r}")
    if isinstance(config, Mapping):
        config = _read(config)
    name = getattr(config, "model_type", None)
    if not isinstance(name, str):
        came = type(config).__name__
        raise EncodingError(
            f"from_hf_config: config must be a transformers configuration with a model_type, got {came}"
        )
    if part not in (None, *get_args(Part)):
        raise EncodingError(f"from_hf_config: part must be 'encoder', 'decoder' or None, got {part!r}")
    if name == "whisper":
        _check_layer(config, layer, f"{part}_layers" if part else "num_hidden_layers")
        return whisper(config, part)
    if part is not None:
        raise config_error(config, f"expected no part, because its config describes one model, got {part!r}")
    if name in ROPE_MODEL_TYPES or (name in _BUILDERS and name not in LAYERS_IN_STAGES):
        _check_layer(config, layer, "num_hidden_layers" if hasattr(config, "num_hidden_layers") else "depth")
    if name in ROPE_MODEL_TYPES:
        return rotary_of(config, layer, ROPE_MODEL_TYPES[name])
    if name in _BUILDERS:
        return _BUILDERS[name](config, layer)
    parts = [part for part in getattr(config, "sub_configs", {}) if getattr(config, part, None) is not None]
    if parts:
        raise config_error(config, f"expected one model, got several; pass one of config.{', config.'.join(parts)}")
    raise config_error(config, "expected a known model type; how its layers are rotated is not in its config")


def _check_layer(config: object, layer: int, name: str) -> None:
    """Reject a layer that the model does not have."""
    layers = getattr(config, name, None)
    if layers is None or layer >= layers:
        raise config_error(config, f"expected layer to be under {name}={layers}, got {layer}")


def _read(values: Mapping[str, Any]) -> object:
    """The configuration of a dictionary."""
    from transformers import CONFIG_MAPPING

    name = values.get("model_type")
    if name not in CONFIG_MAPPING:
        raise EncodingError(f"from_hf_config: expected a model_type that transformers knows, got {name!r}")
    return CONFIG_MAPPING[name].from_dict(copy.deepcopy(dict(values)))
