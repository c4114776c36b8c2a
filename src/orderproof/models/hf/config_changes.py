"""The same weights with one configuration value changed that must change the output: rotary base, scaling, window.

A value that is read and never used is a common defect: weights that were trained with it then run without. Only values
that are in use according to the configuration are changed.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch

from orderproof.cast_on_use import is_large
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.shared_weights import parameters_without_memory, share_parameters
from orderproof.models.tiny.proportional_sizes import config_value

THETA_FACTOR = 8.0  # on rope_theta
SCALING_FACTOR = 4.0  # on the factor of rope scaling
SCALED_ROPE_TYPES = ("linear", "yarn", "llama3")  # whose factor changes the output at every length
WINDOW_LAYER_TYPES = {  # key [tokens] -> layer type
    "sliding_window": "sliding_attention",
    "local_attention": "sliding_attention",
    "attention_chunk_size": "chunked_attention",
}
SHORT_WINDOW = 2  # [tokens]
_DERIVED_BUFFERS = re.compile(r"freq|cos|sin|position|bias|mask")  # buffers computed from the configuration


def models_with_changed_config(model: Any) -> Iterator[tuple[str, Any]]:
    """Pairs of the name of a changed value and the model with that change."""
    for name, config in _config_changes(model):
        try:
            changed = _rebuild_with_config(model, config)
        except Exception:  # noqa: BLE001 - third-party code: a configuration may be refused in any way
            continue
        yield name, changed


def _rebuild_with_config(model: Any, config: Any) -> Any:
    shares = is_large(model)
    with suppress_warnings(), torch.random.fork_rng(devices=[]):
        with parameters_without_memory() if shares else nullcontext():
            rebuilt = type(model)(config)
        rebuilt = rebuilt.to(model.dtype).eval()
    weights = {**dict(model.named_parameters()), **_trained_buffers(model)}
    if shares:
        share_parameters(rebuilt, model)
    own = {} if shares else dict(rebuilt.named_parameters())
    with torch.no_grad():
        for name, value in {**own, **_trained_buffers(rebuilt)}.items():
            value.copy_(weights[name])
    return rebuilt


def _trained_buffers(model: Any) -> dict[str, Any]:
    """Buffers that are saved with the weights and not computed from the configuration."""
    stored = model.state_dict()
    return {name: b for name, b in model.named_buffers() if name in stored and not _DERIVED_BUFFERS.search(name)}


def _config_changes(model: Any) -> Iterator[tuple[str, Any]]:
    config = model.config
    rope = config_value(config, "rope_parameters")
    if isinstance(rope, dict) and uses_rotary(model):
        layers = config_value(config, "layer_types")
        by_type = {kind: part for kind, part in rope.items() if isinstance(part, dict) and kind in (layers or ())}
        for kind, part in by_type.items() if by_type else [("", rope)]:
            suffix = f" of {kind} layers" if kind else ""
            for name, values in _rope_changes(part, frequencies=_max_frequency_count(model)):
                parameters = {**rope, kind: {**part, **values}} if kind else {**rope, **values}
                changed = _config_with(config, "rope_parameters", parameters)
                bases = config_value(config, "layer_rope_theta")
                if isinstance(bases, list) and "rope_theta" in values:  # takes precedence over rope_theta
                    changed.layer_rope_theta = [THETA_FACTOR * base for base in bases]
                yield name + suffix, changed
    for name, kind in WINDOW_LAYER_TYPES.items():
        size, layers = config_value(config, name), config_value(config, "layer_types")
        if name == "local_attention" and config_value(config, "sliding_window") is not None:
            continue  # the configuration derived sliding_window from it
        if isinstance(size, int) and size > 0 and (layers is None or kind in layers):
            yield name, _config_with(config, name, SHORT_WINDOW if size > SHORT_WINDOW else size + 2)


def _max_frequency_count(model: Any) -> int:
    """The largest number of rotary frequencies in a table; the first frequency is 1 for every base."""
    tables = [buffer.numel() for name, buffer in model.named_buffers() if "inv_freq" in name]
    return max(tables, default=2)


def _rope_changes(rope: dict[str, Any], *, frequencies: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if frequencies > 1 and isinstance(rope.get("rope_theta"), (int, float)):
        yield "rope_theta", {"rope_theta": THETA_FACTOR * rope["rope_theta"]}
    if rope.get("rope_type") == "default":
        yield "rope_type", {"rope_type": "linear", "factor": SCALING_FACTOR}
    elif rope.get("rope_type") in SCALED_ROPE_TYPES and _scales_a_frequency(rope, frequencies):
        yield "rope factor", {"factor": SCALING_FACTOR * rope["factor"]}


def _scales_a_frequency(rope: dict[str, Any], frequencies: int) -> bool:
    """False of the rope of Llama 3 if all its frequencies are high ones, which it leaves as they are."""
    if rope.get("rope_type") != "llama3":
        return True
    longest = 2 * math.pi * float(rope["rope_theta"]) ** ((frequencies - 1) / frequencies)
    return bool(longest > rope["original_max_position_embeddings"] / rope["high_freq_factor"])


def uses_rotary(model: Any) -> bool:
    """True if a model has attention, and its configuration does not switch rotary positions off."""
    config = model.config
    parts = list(model.modules())
    if not any("Attention" in type(part).__name__ for part in parts):
        return False
    if any(vars(part).get("rotary_emb", part) is None for part in parts) and not any(
        "Rotary" in type(part).__name__ for part in parts
    ):
        return False  # Granite hybrid builds no rotary module unless its configuration asks for one
    chosen = config_value(config, "position_embedding_type")
    off = any(config_value(config, name) is False for name in ("use_mem_rope", "use_rope", "rotary"))
    return chosen in (None, "rope", "rotary") and not config_value(config, "alibi") and not off


def _config_with(config: Any, name: str, value: Any) -> Any:
    changed = copy.deepcopy(config)
    setattr(changed, name, value)
    return changed
