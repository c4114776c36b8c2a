"""What no rule of `shrinking` and `scaling` gets right, one architecture a line, with the reason."""

from __future__ import annotations

from typing import Any

_SECTIONS = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}

_ROUTED = {"num_experts_per_tok": 2, "n_routed_experts": 4, "n_shared_experts": 1}

_SLENDER = {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320}  # a quarter of 1280

EXCEPTIONS: dict[str, dict[str, Any]] = {
    # what the default configuration leaves open and the model needs
    "chameleon": {"vocabulary_map": {"<image>": 5}},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 10000.0}},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse"], "num_experts_per_tok": 2},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32},
    "dots1": _ROUTED,
    "esm": {"vocab_size": 33, "pad_token_id": 1},
    "qwen4_exp_text": {
        "indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 4,
        "indexer_compress_ratio": 2,
    },
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "nemotron": {"num_key_value_heads": 2},
    "pix2struct_text_model": {"initializer_range": 0.02},  # its class asks for a key that its configuration lacks
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 64},  # likewise
    "t5gemma2_decoder": {"dropout_rate": 0.0},  # likewise
    "t5gemma2_text": {"dropout_rate": 0.0},  # likewise
    "mllama_vision_model": {"max_num_tiles": 1, "supported_aspect_ratios": [[1, 1]]},  # an image of one tile
    "xclip_vision_model": {"num_frames": 1},  # frames of a film stand in the batch: images, not films
    "eomt": {"num_blocks": 1},  # the last blocks are those with queries
    "eomt_dinov3": {"num_blocks": 1},
    # convolution nets that are narrower by a factor, not by their keys
    "align_vision_model": _SLENDER,
    "efficientnet": _SLENDER,
    "xmod": {"default_language": "en_XX"},
    "step3p5": {"sliding_window": 4},
    "t5gemma": {"is_encoder_decoder": False},  # the encoder alone is audited
    # sections of rotary features for the full width are written in the modelling file
    "ernie4_5_vl_moe_text": {"rope_parameters": {**_SECTIONS, "mrope_section": [2, 2, 4]}},
    "glm4v_moe_text": {"rope_parameters": {**_SECTIONS, "mrope_section": [1, 1, 2]}},
    "glm4v_text": {"rope_parameters": _SECTIONS},
    "glm_image_text": {"rope_parameters": _SECTIONS},
    "glm_ocr_text": {"rope_parameters": _SECTIONS},
    "hunyuan_vl_text": {"rope_parameters": {**_SECTIONS, "mrope_section": [2, 2, 2, 2]}},
    "qwen2_5_omni_talker": {"rope_parameters": _SECTIONS},
    "qwen2_5_omni_text": {"rope_parameters": _SECTIONS},
    "qwen2_5_vl_text": {"rope_parameters": _SECTIONS},
    "qwen2_vl_text": {"rope_parameters": _SECTIONS},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _SECTIONS}},  # one for each kind of layers
    "llama4_vision_model": {  # four patches are joined, twice as many features a side
        "image_size": 16, "intermediate_size": 256, "projector_input_dim": 64, "projector_output_dim": 64,
        "vision_output_dim": 64,
    },
    # windows in pixels: two groups of patches wide
    "exaone4_5_vision": {"window_size": 16},
    "qwen2_5_omni_vision_encoder": {"window_size": 16},
    "qwen2_5_vl_vision": {"window_size": 16},
    # relations between keys
    "dots3_note_text": {  # keys that differ from layer to layer, and those of layers with a window
        "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 32, "head_dim": 24,
        "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "index_head_dim": 16,
        "swa_num_attention_heads": 4, "swa_num_key_value_heads": 4, "swa_q_lora_rank": 32, "swa_kv_lora_rank": 32,
        "swa_head_dim": 24, "swa_qk_nope_head_dim": 16, "swa_v_head_dim": 16,
    },
    "gemma3n_text": {  # the last layers share keys with earlier ones of their kind
        "num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2, "num_kv_shared_layers": 2,
        "intermediate_size": 128, "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0],
    },
    "zamba": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid"] * 2},  # hybrid layers share weights
    "glm5_next_text": {  # as many keys as heads, no rotary features, and kpool divides topk
        "index_kpool": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "qk_rope_head_dim": 0,
    },
}  # fmt: skip
