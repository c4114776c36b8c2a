"""The mechanisms of a transformers model, so that advice names none that the model does not have."""

from __future__ import annotations

import re
import sys
from typing import Any

from orderproof.models.hf.config_changes import uses_rotary
from orderproof.models.hf.context_spans import context_spans
from orderproof.models.tiny.proportional_sizes import config_value

_RECURRENCE = re.compile(r"Mamba|Rwkv|Recurrent|SSM|LSTM|GRU|Delta|Lightning|Retention|ShortConv|Mixer2?$")
_WINDOW_LAYERS = ("sliding_attention", "chunked_attention")


def mechanisms(model: Any, config: Any, table_size: int | None) -> frozenset[str]:
    """Any of "recurrence", "window", "rotary", "table" and "attention"."""
    names = {type(part).__name__ for part in model.modules()}
    layers = config_value(config, "layer_types") or ()
    spans = any("window" in key for key in context_spans(config))
    rope = config_value(config, "rope_parameters") is not None or any("Rotary" in name for name in names)
    found = {
        "recurrence": any(_RECURRENCE.search(name) for name in names),
        "window": any(kind in layers for kind in _WINDOW_LAYERS) or (not layers and spans),
        "rotary": rope and uses_rotary(model),
        "table": table_size is not None,
        "attention": any("Attention" in name for name in names),
    }
    return frozenset(name for name, has in found.items() if has)


def single_tokens_are_real(model: Any) -> bool:
    """True if a layer's mask is made by a function that states: the single token of a call on a cache is never a pad.

    That is `transformers.masking_utils.create_recurrent_attention_mask`.
    """
    modules = {type(part).__module__ for part in model.modules()}
    return any(hasattr(sys.modules.get(name), "create_recurrent_attention_mask") for name in modules)
