"""Tiny versions of an architecture: the same class and branches, small sizes, random weights.

Sizes shrink; what selects a branch (activations, windows, rope types, layer kinds) stays. Every
parameter is moved off its initial value, so that a zero bias or a norm weight of one hides nothing,
and matrices are large enough that attention is far from uniform.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from orderproof.subjects.scaling import read
from orderproof.subjects.subject import seeded

LAYERS, HEADS, GROUPS, HEAD_WIDTH = 2, 4, 2, 16
NOISE = 0.12  # standard deviation added to every weight

_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers")
_HEADS = ("num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads")
_GROUPS = ("num_key_value_heads", "num_kv_heads")
_WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "word_embed_proj_dim", "pooler_output_size", "out_hidden_size")
_SIZES: dict[str, int] = {
    **dict.fromkeys((*_LAYERS, "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("intermediate_size", "d_ff", "ffn_dim", "hidden_dim", "ffn_hidden_size", "n_inner"), 128),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "shared_expert_intermediate_size"), 128),
    **dict.fromkeys(("moe_intermediate_size", "expert_ffn_hidden_size"), 64),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_size", "v_head_dim", "qk_nope_head_dim"), HEAD_WIDTH),
    **dict.fromkeys(("rotary_dim", "qk_rope_head_dim"), HEAD_WIDTH // 2),
    **dict.fromkeys(("embedding_size", "input_embedding_size", "kv_lora_rank", "q_lora_rank"), 32),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 128),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk"), 2),
    **dict.fromkeys(("n_group", "topk_group"), 1),
    **dict.fromkeys(("linear_head_dim", "linear_key_head_dim", "linear_value_head_dim", "mamba_head_dim"), HEAD_WIDTH),
    **dict.fromkeys(("linear_num_heads", "linear_num_value_heads"), HEADS),
    "linear_num_key_heads": GROUPS,
    "ssm_state_size": HEAD_WIDTH,
    "d_latents": 64,
    "num_latents": 16,
    **dict.fromkeys(("moe_hidden_size", "moe_shared_expert_intermediate_size"), 64),
    "query_pre_attn_scalar": HEAD_WIDTH,
    "vocab_size": 99,
    "patch_size": 4,
    **dict.fromkeys(("image_size", "crop_size"), 12),
    "frames_per_clip": 4,
}
SIZE_KEYS = frozenset((*_SIZES, *_HEADS, *_GROUPS, *_WIDTHS, "layer_types", "attention_types", "layers_block_type"))


def shrunk(config: Any, given: Mapping[str, Any], *, faithful: bool = False) -> dict[str, Any]:
    """Configuration values of a tiny version; values given by the user win.

    With ``faithful`` heads share keys as they do in the configuration, so that a twin takes the same branches.
    """
    renamed: Mapping[str, str] = getattr(config, "attribute_map", {})
    chosen = {renamed.get(key, key): value for key, value in given.items()}
    heads = next((chosen[key] for name in _HEADS if (key := renamed.get(name, name)) in chosen), HEADS)
    sizes = {
        **{key: min(value, _integer(config, key, value)) for key, value in _SIZES.items()},
        **dict.fromkeys(_HEADS, heads),
        **dict.fromkeys(_GROUPS, _groups(config, heads, faithful=faithful)),
        **dict.fromkeys(_WIDTHS, heads * HEAD_WIDTH),
    }
    values: dict[str, Any] = {renamed.get(key, key): size for key, size in sizes.items() if _settable(config, key)}
    if not any(renamed.get(key, key) in chosen for key in _LAYERS):
        values.update(_patterns(config))
    if isinstance(rope := getattr(config, "rope_parameters", None), dict) and rope.get("mrope_section"):
        values["rope_parameters"] = {**rope, "mrope_section": [2, 3, 3]}
    values.update(chosen)
    if (getattr(config, "pad_token_id", None) or 0) >= values.get("vocab_size", 1) and "pad_token_id" not in chosen:
        values["pad_token_id"] = 0
    return values


def perturb(module: nn.Module, seed: int) -> None:
    """Add noise to every parameter, zero-initialised and norm weights included.

    But not to a table that is worked out, and made anew where more rows are needed: that would take the noise back.
    """
    generator = seeded(seed)
    made_anew = {id(p) for part in module.modules() if hasattr(part, "make_weight") for p in part.parameters()}
    with torch.no_grad():
        for parameter in module.parameters():
            if id(parameter) not in made_anew and parameter.is_floating_point():
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=_noise(parameter))


def _noise(parameter: torch.Tensor) -> float:
    """The noise of one parameter; a small filter gets more, lest a deep stack of them fade what comes in to nothing."""
    filtered = parameter.shape[1:].numel() if parameter.ndim >= 4 else 0  # 4: [out, in, height, width]
    return max(NOISE, (2 / filtered) ** 0.5) if filtered else NOISE


def _settable(config: Any, key: str) -> bool:
    if isinstance(getattr(type(config), key, None), property):
        return False
    if key == "head_dim" and hasattr(config, "qk_rope_head_dim"):
        return False  # derived from it
    return read(config, key) is not None


def _integer(config: Any, key: str, otherwise: int) -> int:
    value = read(config, key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else otherwise


def _groups(config: Any, heads: int, *, faithful: bool) -> int:
    if hasattr(config, "qk_rope_head_dim"):
        return heads  # latent attention has a key of its own for every head
    groups = min(GROUPS, heads) if heads % GROUPS == 0 else 1
    if not faithful:
        return groups
    for name in _GROUPS:
        if isinstance(own := getattr(config, name, None), int):
            return heads if own == _integer(config, "num_attention_heads", own) else 1 if own == 1 else groups
    return groups


def _patterns(config: Any) -> dict[str, list[Any]]:
    """Kinds of layers, each kind once as far as two layers go."""
    found: dict[str, list[Any]] = {}
    for name in ("layer_types", "layers_block_type"):
        kinds = list(dict.fromkeys(getattr(config, name, None) or ()))
        if kinds and _settable(config, name):
            found[name] = (kinds * LAYERS)[:LAYERS]
    if types := getattr(config, "attention_types", None):
        found["attention_types"] = [[list(types[0][0]), LAYERS // len(types[0][0]) or 1]]
    return found
