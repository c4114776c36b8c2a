"""A configuration of Hugging Face transformers as an encoding.

    encoding = from_hf_config(AutoConfig.from_pretrained(...), layer=3)

What comes out turns (or adds) what the model's own layer does, at float64's angles instead of float32's: the tests
hold it against the rotary module of every architecture in transformers. What is not certain is refused in one line: a
model type that is not listed, a rope_type or a key that is not known, a part of a larger model that must be chosen.
For latent attention (DeepSeek) the encoding is that of the part of a head that is turned, qk_rope_head_dim wide.
Learned tables and T5's bias come untrained, in the shape of the model's own.
A model's own scale of the scores, where it is not 1 / sqrt(head_width) (T5's is 1), is for the caller to give.
Source: transformers 5.23, modeling_rope_utils.py and the modeling code of each model.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.configs._models import MODELS
from orderproof.encodings.configs._others import OTHERS
from orderproof.encodings.configs._read import refusal
from orderproof.encodings.configs._rotary import rotary_of
from orderproof.errors import EncodingError


def from_hf_config(config: object, layer: int = 0) -> PositionalEncoding:
    """The encoding of one layer, counted from 0, of the model a configuration describes.

    ``config`` is a transformers configuration, or a dictionary such as its config.json holds, which is then read by
    transformers. It is not changed.
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
    if (name in MODELS or name in OTHERS) and (layers is None or layer >= layers):
        raise refusal(config, f"expected layer to be under num_hidden_layers={layers}, got {layer}")
    if name in MODELS:
        return rotary_of(config, layer, MODELS[name])
    if name in OTHERS:
        return OTHERS[name](config, layer)
    parts = [part for part in getattr(config, "sub_configs", {}) if getattr(config, part, None) is not None]
    if parts:
        raise refusal(config, f"it holds several models; give one of config.{', config.'.join(parts)}")
    raise refusal(config, "not known here: whether and how its layers turn is in its code, not in its config")


def _read(values: Mapping[str, Any]) -> object:
    """The configuration that a dictionary holds."""
    from transformers import CONFIG_MAPPING

    name = values.get("model_type")
    if name not in CONFIG_MAPPING:
        raise EncodingError(f"from_hf_config: expected a model_type that transformers knows, got {name!r}")
    return CONFIG_MAPPING[name].from_dict(copy.deepcopy(dict(values)))
