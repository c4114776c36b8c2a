"""Exceptions to `fixed_sizes` and `proportional_sizes`, one architecture per line, with the reason."""

from __future__ import annotations

from typing import Any

from orderproof.models.tiny.proportional_sizes import POSITION_COUNT

_MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}

_MOE = {"num_experts_per_tok": 2, "n_routed_experts": 4, "n_shared_experts": 1}

_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16}  # heads and width of a head: twice the width

_NARROW_EFFICIENTNET = {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320}  # a quarter of 1280

_NARROW_HGNET = {  # an eighth of its channels, and at least 16
    "model_type": "hgnet_v2", "stem_channels": [3, 16, 16], "stage_in_channels": [16, 16, 64, 128],
    "stage_mid_channels": [16, 16, 24, 48], "stage_out_channels": [16, 64, 128, 256],
    "hidden_sizes": [32, 64, 128, 256], "out_features": ["stage2", "stage3", "stage4"],
}  # fmt: skip

_NARROW_DETECTOR = {
    "backbone_config": _NARROW_HGNET, "encoder_in_channels": [64, 128, 256], "encoder_hidden_dim": 64,
    "decoder_in_channels": [64, 64, 64],
}  # fmt: skip

_STRIPE_CONVOLUTIONS = {  # kernel, stride and padding of the convolutions of a block, for each of its three sizes
    f"{kind}_{ratio}": [[tall, wide], [1, 1], [tall // 2, wide // 2]]
    for ratio, size in (("longratio", 7), ("midratio", 5), ("shortratio", 3))
    for kind, tall, wide in (
        ("vertical_long_to_small_conv", size, 1), ("horizontal_small_to_long_conv", 1, size),
        ("symmetric_conv_long", size, size),
    )
}  # fmt: skip

_SMALL_VIT = {
    "model_type": "dinov2", "image_size": 32, "patch_size": 8, "hidden_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 4,
}  # fmt: skip

_SMALL_T5_GEMMA = {
    "hidden_size": 72, "intermediate_size": 288, "num_hidden_layers": 2, "num_attention_heads": 8,
    "num_key_value_heads": 4, "head_dim": 8, "vocab_size": 99, "sliding_window": 4,
    "max_position_embeddings": POSITION_COUNT,
}  # fmt: skip

# arguments of configurations without a default
DEFAULT_CONFIG_ARGUMENTS: dict[str, dict[str, Any]] = {
    "nougat": {"encoder": {"model_type": "donut-swin"}},  # the default "donut_swin" does not exist in transformers
}

# models that cannot be audited separately, and why
UNSUPPORTED_ARCHITECTURES = {
    "gemma4_assistant": "it reads the keys and values of the model that it assists and computes none",
    "rag": "it reads a question and retrieved documents; its components are dpr and bart",
    "seggpt": "it reads an image and an example as one picture, so no sequence of tokens belongs to the image",
    "inkling_vision": "it maps each patch of an image to one token separately, so it has no sequence of tokens",
}

SIZE_OVERRIDES: dict[str, dict[str, Any]] = {
    # required by the model, but open in the default configuration
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 10000.0},
        "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 4},
    },
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense", "sparse"], "num_experts_per_tok": 2},
    "deepseek_ocr2_vision": {  # the default encoder is wider than its input
        "sam_config": {
            "hidden_size": 64, "output_channels": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
            "image_size": 192, "global_attn_indexes": [1], "window_size": 2, "downsample_channels": [32, 64],
        },
        "encoder_config": {
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 4, "vocab_size": 99, "sliding_window": 4,
        },
    },
    "deepseek_v2": {"num_experts_per_tok": 2},
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32},
    "dots1": _MOE,
    "esm": {"vocab_size": 33, "pad_token_id": 1},
    "qwen4_exp_text": {
        "indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 4,
        "indexer_compress_ratio": 2,
    },
    "lw_detr": {"projector_scale_factors": [1.0]},
    "pp_ocrv6_medium_det": {
        "intraclass_block_config": {**_STRIPE_CONVOLUTIONS, "reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0]},
        "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2],
        "backbone_config": {"model_type": "hgnet_v2", "out_features": ["stage1", "stage2", "stage3", "stage4"]},
    },
    "pp_ocrv6_small_det": {  # the channels of its neck are not those of its backbone
        "layer_list_out_channels": [48, 96, 192, 384],
        "backbone_config": {
            "model_type": "pp_lcnet_v3", "scale": 0.75, "divisor": 16,
            "out_features": ["stage2", "stage3", "stage4", "stage5"],
        },
    },
    "uvdoc": {  # its head reads every stage
        "backbone_config": {"model_type": "uvdoc_backbone", "out_features": [f"stage{k}" for k in range(1, 7)]},
    },
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "lfm3": {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "sliding_attention"]},
    "nemotron": {"num_key_value_heads": 2},
    "pix2struct_text_model": {"initializer_range": 0.02},  # its class asks for a key that its configuration lacks
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 64},  # likewise
    "t5gemma2_decoder": {"dropout_rate": 0.0},  # likewise
    "t5gemma2_text": {"dropout_rate": 0.0},  # likewise
    "mllama_vision_model": {"max_num_tiles": 1, "supported_aspect_ratios": [[1, 1]]},  # an image of one tile
    "xclip_vision_model": {"num_frames": 1},  # frames of a video are in the batch: images, not videos
    "sam3_lite_text_text_model": {"num_hidden_layers": 3},  # the first and the last layer are convolutions
    "janus_vqgan": {
        "base_channels": 32, "latent_channels": 32, "num_embeddings": 64, "channel_multiplier": [1, 2],
        "num_patches": 12,
    },
    # a merger follows this layer
    "minicpm_ocr_vision": {"insert_layer_id": 0},
    "minicpmv4_6_vision": {"insert_layer_id": 0},
    "minicpmv4_7_vision": {"insert_layer_id": 0},
    "eomt": {"num_blocks": 1},  # the last blocks have queries
    "eomt_dinov3": {"num_blocks": 1},
    "sam2": {  # the sizes of its feature maps are fixed
        "vision_config": {
            "backbone_config": {
                "model_type": "sam2_hiera_det_model", "image_size": [64, 64], "blocks_per_stage": [1, 1, 2, 1],
                "global_attention_blocks": [3],
            },
            "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]],
        },
        "prompt_encoder_config": {"image_size": 64},
    },
    "sam3_tracker": {  # likewise
        "vision_config": {
            "backbone_config": {
                "model_type": "sam3_vit_model", "image_size": 112, "pretrain_image_size": 56, "window_size": 4,
                "hidden_size": 64, "intermediate_size": 296, "num_hidden_layers": 2, "num_attention_heads": 8,
                "global_attn_indexes": [1],
            },
            "backbone_feature_sizes": [[32, 32], [16, 16], [8, 8]], "fpn_hidden_size": 16,
        },
        "prompt_encoder_config": {"image_size": 112, "hidden_size": 16},
    },
    "depth_pro": {  # three encoders of images, four times as large each side
        "patch_size": 32, "image_model_config": _SMALL_VIT, "patch_model_config": _SMALL_VIT,
        "fov_model_config": _SMALL_VIT, "intermediate_hook_ids": [1, 0], "intermediate_feature_dims": [32, 32],
        "scaled_images_feature_dims": [64, 64, 32], "fusion_hidden_size": 32,
    },
    # convolution nets that are narrower by a factor, not by their keys
    "align_vision_model": _NARROW_EFFICIENTNET,
    "efficientnet": _NARROW_EFFICIENTNET,
    "tvp": {"num_frames": 2, "max_img_size": 64, "visual_prompt_size": 8},  # with a video
    "xmod": {"default_language": "en_XX"},
    "step3p5": {"sliding_window": 4},
    # the encoder alone is audited, with a window that proofs cross
    "t5gemma": {"is_encoder_decoder": False, "encoder": _SMALL_T5_GEMMA, "decoder": _SMALL_T5_GEMMA},
    # sections of rotary features for the full width are written in the modelling file
    "ernie4_5_vl_moe_text": {
        "rope_parameters": {**_MROPE, "mrope_section": [2, 2, 4]}, "hidden_size": 64, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 128, "moe_intermediate_size": [64, 32],
    },
    "glm4v_moe_text": {"rope_parameters": {**_MROPE, "mrope_section": [1, 1, 2]}},
    "glm4v_text": {"rope_parameters": _MROPE},
    "glm_image_text": {"rope_parameters": _MROPE},
    "glm_ocr_text": {"rope_parameters": _MROPE},
    "hunyuan_vl_text": {"rope_parameters": {**_MROPE, "mrope_section": [2, 2, 2, 2]}},
    "paddleocr_vl_text": {"rope_parameters": _MROPE, "head_dim": 16},
    "qwen2_5_omni_talker": {
        "rope_parameters": _MROPE, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128,
        "embedding_size": 64,
    },
    "qwen2_5_omni_text": {"rope_parameters": _MROPE},
    "qwen2_5_vl_text": {"rope_parameters": _MROPE},
    "qwen2_vl_text": {"rope_parameters": _MROPE},
    "cohere_compass_text": {"rope_parameters": {"full_attention": _MROPE}},  # one per layer type
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
    # texts are padded to multiples of 64 tokens, and more than one multiple is to fit
    "nystromformer": {"max_position_embeddings": 128},
    "reformer": {"max_position_embeddings": 128},
    # one layer of attention: without one, a call with a cache raises an error
    "bamba": {"attn_layer_indices": [1], **_MAMBA},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"], **_MAMBA},
    "nemotron_h": {"layers_block_type": ["linear_attention", "full_attention", "moe", "mlp"], "mamba_num_heads": 8},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "falcon_h1": {**_MAMBA, "mamba_d_ssm": 128},
    "mamba2": {"hidden_size": 64, "num_heads": 8, "head_dim": 16, "state_size": 16},
    "recurrent_gemma": {"block_types": ["recurrent", "attention"]},  # the first two default blocks have no attention
    "zamba": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid"] * 2},  # hybrid layers share weights
    # sizes under keys of their own
    "canine": {"num_hash_buckets": 256},
    "chameleon": {
        "vocabulary_map": {"<image>": 5},
        "vq_config": {
            "base_channels": 32, "latent_channels": 32, "embed_dim": 32, "num_embeddings": 64,
            "channel_multiplier": [1, 2],
        },
    },
    "d_fine": _NARROW_DETECTOR,
    "deimv2": _NARROW_DETECTOR,
    "pp_doclayout_v4": _NARROW_DETECTOR,
    "pp_doclayout_v3": {
        **_NARROW_DETECTOR, "x4_feat_dim": 16,
        "backbone_config": {**_NARROW_HGNET, "out_features": ["stage1", "stage2", "stage3", "stage4"]},
    },
    "deepseek_v4": {"head_dim": 16},
    "embedding_gemma2_text": {"head_dim": 16, "hidden_size_per_layer_input": 16},
    "gemma4_unified_text": {"head_dim": 16, "global_head_dim": 32},
    "higgs_audio_v2": {"codebook_size": 32, "audio_stream_bos_id": 32, "audio_stream_eos_id": 33},
    "hunyuan_vl_vision": {"max_image_size": 64, "text_hidden_size": 64},
    "mobilevitv2": {"image_size": 64, "width_multiplier": 0.25},
    "parakeet_encoder": {"subsampling_conv_channels": 32},
    "pe_audio_encoder": {"dac_config": {"encoder_hidden_size": 4}},
    "slanext": {
        "max_text_length": 16, "hidden_size": 64, "post_conv_in_channels": 32, "post_conv_out_channels": 64,
        "vision_config": {
            "hidden_size": 64, "output_channels": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "mlp_dim": 128,
            "image_size": 48, "global_attn_indexes": [1],
        },
    },
    "funnel": {"d_inner": 128, "d_head": 16, "block_sizes": [1, 2]},
    "gemma4_text": {"head_dim": 16, "global_head_dim": 32},
    "inkling_text": {"swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 16},
    "inkling2_text": {"swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 16},
    "longcat_flash": {
        "num_attention_heads": 4, "num_key_value_heads": 4, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
        "qk_head_dim": 24, "head_dim": 8, "v_head_dim": 16, "zero_expert_num": 2,
    },
    "minimax_m3_vl_text": {"dense_intermediate_size": 128, "shared_intermediate_size": 64, "index_head_dim": 16},
    "glm5_next_text": {  # as many keys as heads, no rotary features, and kpool divides topk
        "index_kpool": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "qk_rope_head_dim": 0,
    },
}  # fmt: skip
