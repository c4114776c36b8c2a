"""The encoding of a Hugging Face transformers configuration.

    encoding = from_hf_config(AutoConfig.from_pretrained(...), layer=3)

The result computes the same function as the model's layer, with float64 angles instead of float32: the tests compare
it with the rotary module of every architecture in transformers. Anything uncertain is rejected with one line: an
unlisted model type, an unknown rope_type or key, a configuration of several models.
For latent attention (DeepSeek) the encoding is that of the rotated part of a head, with qk_rope_head_dim features.
Learned tables and T5's bias are initialized randomly, with the shapes of the model's parameters.
If a model's score scale is not 1 / sqrt(head_width) (T5's is 1), the caller must pass it to `attention`.
Source: transformers 5.23, modeling_rope_utils.py and the modeling code of each model.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.configs._config_values import config_error
from orderproof.encodings.configs._model_types import ROPE_MODEL_TYPES
from orderproof.encodings.configs._non_rope import NON_ROPE_BUILDERS
from orderproof.encodings.configs._rotary import rotary_of
from orderproof.errors import EncodingError


def from_hf_config(config: object, layer: int = 0) -> PositionalEncoding:
    """The encoding of one layer, counted from 0, of the model with this configuration.

    ``config`` is a transformers configuration, or the dictionary of a config.json, which transformers then parses. It
    is not changed. Raises `EncodingError` if the encoding is not certain.
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
    layers = getattr(config, "num_hidden_layers", getattr(config, "depth", None))
    if (name in ROPE_MODEL_TYPES or name in NON_ROPE_BUILDERS) and (layers is None or layer >= layers):
        raise config_error(config, f"expected layer to be under num_hidden_layers={layers}, got {layer}")
    if name in ROPE_MODEL_TYPES:
        return rotary_of(config, layer, ROPE_MODEL_TYPES[name])
    if name in NON_ROPE_BUILDERS:
        return NON_ROPE_BUILDERS[name](config, layer)
    parts = [part for part in getattr(config, "sub_configs", {}) if getattr(config, part, None) is not None]
    if parts:
        raise config_error(config, f"expected one model, got several; pass one of config.{', config.'.join(parts)}")
    raise config_error(config, "expected a known model type; how its layers are rotated is not in its config")


def _read(values: Mapping[str, Any]) -> object:
    """The configuration of a dictionary."""
    from transformers import CONFIG_MAPPING

    name = values.get("model_type")
    if name not in CONFIG_MAPPING:
        raise EncodingError(f"from_hf_config: expected a model_type that transformers knows, got {name!r}")
    return CONFIG_MAPPING[name].from_dict(copy.deepcopy(dict(values)))
