"""Keys of config.json as earlier versions of transformers wrote them.

transformers 5 writes `rope_parameters`; versions before wrote `rope_theta`, `rope_scaling` and others at the top level.
An engine that reads the old keys loads a new checkpoint with its own defaults, or refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OTHER_NAMES: Mapping[str, str] = {
    "n_ctx": "n_positions",
    "torch_dtype": "dtype",
}  # old key -> the key with the same value
OF_ONE: Mapping[str, Mapping[str, str]] = {  # the same for an architecture
    "lfm2": {"block_dim": "hidden_size", "conv_dim": "hidden_size"},
}
FIXED_VALUES: Mapping[str, Mapping[str, Any]] = {  # by architecture: keys whose only value is in the program today
    "apertus": {"mlp_bias": False, "post_norm": False, "qk_norm": True},
    **{name: {"position_embedding_type": "absolute"} for name in ("bert", "camembert", "roberta", "xlm-roberta")},
}
LAYER_LETTERS = {"sliding_attention": "L", "full_attention": "G"}  # of a pattern, as exaone4 wrote it: "LLLG"


def older_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """The old keys that a configuration lacks, with the values that it states in other places."""
    kind = str(config.get("model_type"))
    keys = dict(FIXED_VALUES.get(kind, {}))
    rope = config.get("rope_parameters")
    if isinstance(rope, Mapping):
        nested = {name: value for name, value in rope.items() if isinstance(value, Mapping)}
        keys |= _rope_keys(nested.get("full_attention") or next(iter(nested.values()), rope))
        local = nested.get("sliding_attention")
        if local is not None and "rope_theta" in local:
            keys["rope_local_base_freq"] = local["rope_theta"]
    if (width := config.get("hidden_size")) and (heads := config.get("num_attention_heads")):
        keys["head_dim"] = width // heads
    names = {**OTHER_NAMES, **OF_ONE.get(kind, {})}
    keys |= {old: config[new] for old, new in names.items() if config.get(new) is not None}
    keys = {key: value for key, value in keys.items() if key not in config or config[key] is None}
    if isinstance(config.get("sliding_window_pattern"), int) and config.get("model_type") == "exaone4":
        keys["sliding_window_pattern"] = "".join(LAYER_LETTERS[kind] for kind in config["layer_types"])
    return keys


def _rope_keys(rope: Mapping[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if "rope_theta" in rope:
        keys["rope_theta"] = keys["rotary_emb_base"] = rope["rope_theta"]
    if "partial_rotary_factor" in rope:
        keys["partial_rotary_factor"] = keys["rotary_pct"] = keys["rope_pct"] = rope["partial_rotary_factor"]
    kind = rope.get("rope_type", "default")
    scaled = {key: value for key, value in rope.items() if key not in ("rope_theta", "partial_rotary_factor")}
    keys["rope_scaling"] = None if kind == "default" else {**scaled, "type": kind}
    return keys
