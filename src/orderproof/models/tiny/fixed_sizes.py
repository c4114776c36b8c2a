"""Tiny models of an architecture with fixed sizes: the same class and branches, random weights.

Sizes shrink; keys that select a branch (activations, windows, rope types, layer types) stay. Every parameter is moved
off its initial value, so that no zero bias or unit norm weight hides an error, and matrices are large enough that
attention is far from uniform.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from orderproof.models.sample import seeded_generator
from orderproof.models.tiny.proportional_sizes import POSITION_COUNT, config_value

LAYER_COUNT, HEAD_COUNT, KV_HEAD_COUNT, HEAD_DIM = 2, 4, 2, 16
EXPERT_WIDTH = 8  # [features] small: batched experts copy the weights of an expert for every token
WEIGHT_NOISE_STD = 0.12  # standard deviation added to every weight

LAYER_TYPE_KEYS = ("layer_types", "layers_block_type", "attn_layer_indices")  # names of one list in some families
_LAYER_KEYS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers")
_HEAD_KEYS = (
    "num_attention_heads",
    "num_heads",
    "n_head",
    "n_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
)
_KV_HEAD_KEYS = ("num_key_value_heads", "num_kv_heads")
_WIDTH_KEYS = (
    "hidden_size",
    "d_model",
    "n_embd",
    "dim",
    "word_embed_proj_dim",
    "pooler_output_size",
    "out_hidden_size",
)
_MLP_WIDTH_KEYS = ("intermediate_size", "d_ff", "ffn_dim", "hidden_dim", "ffn_hidden_size", "n_inner")
_EXPERT_WIDTH_KEYS = ("moe_intermediate_size", "expert_ffn_hidden_size")
_EXPERT_COUNT_KEYS = ("num_local_experts", "num_experts", "n_routed_experts")
_SIZES: dict[str, int] = {
    **dict.fromkeys((*_LAYER_KEYS, "num_decoder_layers"), LAYER_COUNT),
    **dict.fromkeys(_MLP_WIDTH_KEYS, 128),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "shared_expert_intermediate_size"), 128),
    **dict.fromkeys(_EXPERT_WIDTH_KEYS, EXPERT_WIDTH),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_size", "v_head_dim", "qk_nope_head_dim"), HEAD_DIM),
    **dict.fromkeys(("rotary_dim", "qk_rope_head_dim"), HEAD_DIM // 2),
    **dict.fromkeys(("embedding_size", "input_embedding_size", "kv_lora_rank", "q_lora_rank"), 32),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), POSITION_COUNT),
    **dict.fromkeys(_EXPERT_COUNT_KEYS, 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk"), 2),
    **dict.fromkeys(("n_group", "topk_group"), 1),
    **dict.fromkeys(("linear_head_dim", "linear_key_head_dim", "linear_value_head_dim", "mamba_head_dim"), HEAD_DIM),
    **dict.fromkeys(("linear_num_heads", "linear_num_value_heads"), HEAD_COUNT),
    "linear_num_key_heads": KV_HEAD_COUNT,
    "ssm_state_size": HEAD_DIM,
    "d_latents": 64,
    "num_latents": 16,
    **dict.fromkeys(("moe_hidden_size", "moe_shared_expert_intermediate_size"), 64),
    **dict.fromkeys(("shared_intermediate_size", "shared_experts_intermediate_size"), 64),
    **dict.fromkeys(("o_lora_rank", "hc_lowrank"), 32),
    "index_head_dim": HEAD_DIM,
    "query_pre_attn_scalar": HEAD_DIM,
    "vocab_size": 99,
    "patch_size": 4,
    **dict.fromkeys(("image_size", "crop_size"), 12),
    "frames_per_clip": 4,
}
_HEAD_WIDTH_KEYS = ("head_dim", "query_pre_attn_scalar")
_LATENT_WIDTHS = {  # of a cache that heads share: kernels take those of DeepSeek only
    "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 64,
}  # fmt: skip
SIZE_KEYS = frozenset(
    (*_SIZES, *_HEAD_KEYS, *_KV_HEAD_KEYS, *_WIDTH_KEYS, "layer_types", "attention_types", "layers_block_type")
)


def widths_of_heads(config: Any, width: int) -> dict[str, int]:
    """The values of a configuration whose heads have this width, where a key or the width of the model decides it."""
    known = config.to_dict()
    latent = isinstance(known.get("kv_lora_rank"), int)
    own = _LATENT_WIDTHS if latent else {key: width for key in _HEAD_WIDTH_KEYS if isinstance(known.get(key), int)}
    return own | {key: HEAD_COUNT * width for key in _WIDTH_KEYS[:3] if isinstance(known.get(key), int)}


def tiny_config_values(config: Any, overrides: Mapping[str, Any], *, keep_kv_groups: bool = False) -> dict[str, Any]:
    """Configuration values of a tiny model; ``overrides`` take precedence.

    With ``keep_kv_groups`` heads share keys as in the configuration, so that a twin takes the same branches.
    """
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    chosen = {renamed.get(key, key): value for key, value in overrides.items()}
    heads = next((chosen[key] for name in _HEAD_KEYS if (key := renamed.get(name, name)) in chosen), HEAD_COUNT)
    widths = dict.fromkeys(_MLP_WIDTH_KEYS, EXPERT_WIDTH) if _experts_have_mlp_width(config) else {}
    sizes = {
        **{key: min(value, _positive_int(config, key, value)) for key, value in {**_SIZES, **widths}.items()},
        **dict.fromkeys(_HEAD_KEYS, heads),
        **dict.fromkeys(_KV_HEAD_KEYS, _kv_heads(config, heads, keep_groups=keep_kv_groups)),
        **dict.fromkeys(_WIDTH_KEYS, heads * HEAD_DIM),
    }
    values: dict[str, Any] = {renamed.get(key, key): size for key, size in sizes.items() if _settable(config, key)}
    if not any(renamed.get(key, key) in chosen for key in (*_LAYER_KEYS, *LAYER_TYPE_KEYS)):
        values.update(_layer_types(config))
    if isinstance(rope := getattr(config, "rope_parameters", None), dict) and rope.get("mrope_section"):
        values["rope_parameters"] = {**rope, "mrope_section": [2, 3, 3]}
    values.update(chosen)
    if (getattr(config, "pad_token_id", None) or 0) >= values.get("vocab_size", 1) and "pad_token_id" not in chosen:
        values["pad_token_id"] = 0
    return values


def add_weight_noise(module: nn.Module, seed: int) -> None:
    """Add noise to every parameter, zero-initialised and norm weights included.

    Computed tables are left alone: they are computed again when more rows are needed, which would remove the noise.
    """
    generator = seeded_generator(seed)
    computed = {id(p) for part in module.modules() if hasattr(part, "make_weight") for p in part.parameters()}
    with torch.no_grad():
        for parameter in module.parameters():
            if id(parameter) not in computed and parameter.is_floating_point():
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=_noise_std(parameter))


def _noise_std(parameter: torch.Tensor) -> float:
    """The standard deviation of the noise; larger for small filters, lest deep stacks attenuate their input."""
    filtered = parameter.shape[1:].numel() if parameter.ndim >= 4 else 0  # 4: [out, in, height, width]
    return max(WEIGHT_NOISE_STD, (2 / filtered) ** 0.5) if filtered else WEIGHT_NOISE_STD


def _settable(config: Any, key: str) -> bool:
    if isinstance(getattr(type(config), key, None), property):
        return False
    if key == "head_dim" and hasattr(config, "qk_rope_head_dim"):
        return False  # derived from it
    return config_value(config, key) is not None


def _positive_int(config: Any, key: str, default: int) -> int:
    value = config_value(config, key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


def _experts_have_mlp_width(config: Any) -> bool:
    """True if the configuration has experts, and states no width for them other than that of the feed-forward part."""
    return any(config_value(config, key) is not None for key in _EXPERT_COUNT_KEYS) and all(
        config_value(config, key) is None for key in _EXPERT_WIDTH_KEYS
    )


def _kv_heads(config: Any, heads: int, *, keep_groups: bool) -> int:
    if hasattr(config, "qk_rope_head_dim"):
        return heads  # latent attention has one key per head
    groups = min(KV_HEAD_COUNT, heads) if heads % KV_HEAD_COUNT == 0 else 1
    if not keep_groups:
        return groups
    for name in _KV_HEAD_KEYS:
        if isinstance(own := getattr(config, name, None), int):
            return heads if own == _positive_int(config, "num_attention_heads", own) else 1 if own == 1 else groups
    return groups


def _layer_types(config: Any) -> dict[str, list[Any]]:
    """Layer types of a model with `LAYER_COUNT` layers: the first distinct ones."""
    values: dict[str, list[Any]] = {}
    for name in ("layer_types", "layers_block_type"):
        kinds = list(dict.fromkeys(getattr(config, name, None) or ()))
        if kinds and _settable(config, name):
            renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
            values[renamed.get(name, name)] = (kinds * LAYER_COUNT)[:LAYER_COUNT]
    if types := getattr(config, "attention_types", None):
        values["attention_types"] = [[list(types[0][0]), LAYER_COUNT // len(types[0][0]) or 1]]
    return values
