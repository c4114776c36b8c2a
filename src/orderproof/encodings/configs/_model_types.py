"""Rotary encodings by model type in transformers, from its modeling code (5.23).

A configuration does not tell which features form a pair, whether partial rotation is supported, or which layers are
rotated; the code does. Model types that are not listed here are rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from orderproof.encodings._rotary_pairs import RotaryLayout

RotaryLayers = Literal["all", "no_rope_layers", "sliding", "sliding_or_unwindowed", "layer_rope_theta"]


@dataclass(frozen=True, kw_only=True)
class RopeModelType:
    """The rotary encoding of one model type."""

    layout: RotaryLayout | Literal["rope_interleave"] = "half"
    """The rotary layout; "rope_interleave": the config attribute of that name decides."""
    partial: bool = False
    """It supports partial_rotary_factor; other models ignore it or fail."""
    rotary_layers: RotaryLayers = "all"
    """Which layers are rotated: by no_rope_layers (1 if rotated), by layer_types, or by a base per layer."""
    nested: bool = False
    """Its rope parameters are nested by layer type."""
    mla: bool = False
    """Multi-head latent attention: a separate part of qk_rope_head_dim features is rotated."""
    scales_scores_by_mscale: bool = False
    """Its attention multiplies scores by YaRN's m(mscale_all_dim) ** 2."""
    mrope_layout: Literal["chunked", "interleaved"] | None = None
    """M-RoPE: the section layout."""
    grid: tuple[int, int] | None = None
    """Axial: the image axes in the order of their shares; 0 is the row, 1 the column."""
    width: Literal["hidden_size", "embed_dim"] = "hidden_size"
    """The attribute that the heads divide, if head_dim is missing."""
    required_attribute: tuple[str, object] | None = None
    """An attribute and the value that enables rotation."""
    rope_optional: bool = False
    """Without rope parameters, or without a base in them, it is not rotated."""
    default_rope_type_only: bool = False
    """It treats any rope_type except "default" in a way of its own."""


_HALF = RopeModelType()
_PAIRS = RopeModelType(layout="interleaved")
_PART = RopeModelType(partial=True)
_NESTED = RopeModelType(nested=True)
_LATENT = RopeModelType(layout="interleaved", mla=True, scales_scores_by_mscale=True)
_GRID = RopeModelType(grid=(0, 1))

_GROUPS: tuple[tuple[RopeModelType, str], ...] = (
    (
        _HALF,
        (
            "apertus arcee aria_text bitnet chameleon csm cwm dbrx deepseek_ocr2_text dia_decoder dia_encoder "
            "diffllama doge dots1 emu3_text_model esmc eurobert evolla falcon_h1 flex_olmo gemma gemma2 gpt_oss "
            "gradium_phonon_tts granite granite4_vision_text granite_docling_text granitemoe granitemoeshared gte "
            "higgs_audio_v2 hrm_text hunyuan_v1_dense hunyuan_v1_moe hy_v3 hyperclovax idefics jais2 jetmoe "
            "jina_embeddings_v3 kyutai_speech_to_text lasr_encoder lfm2 lfm2_moe llama mimi minimax ministral "
            "ministral3 mistral mixtral mllama_text_model moshi neucodec nomic_bert olmo olmo2 olmoe pocket_tts "
            "pocket_tts_audio_tokenizer qwen2 qwen2_moe qwen3 qwen3_moe qwen3_omni_moe_talker_code_predictor seed_oss "
            "solar_open starcoder2 t5_gemma_module timesfm2_5 unlimited_ocr_text vaultgemma "
            "voxtral_realtime_encoder voxtral_realtime_text xcodec2"
        ),
    ),
    (replace(_HALF, default_rope_type_only=True), "molmo2_text phimoe"),
    (replace(_HALF, rope_optional=True), "olmo_hybrid"),
    (_PAIRS, "cohere ernie4_5 ernie4_5_moe helium openai_privacy_filter"),
    (_PAIRS, "pe_audio_encoder pe_audio_video_encoder pe_video_encoder"),
    (
        _PART,
        (
            "bamba glm4_moe gpt_neox gpt_neox_japanese minimax_m2 nemotron persimmon phi phi3 phi4_multimodal "
            "dots3_note_audio_encoder glmasr_encoder minimax_m3_vl_text nemotron3_5_transcribe_asr_audio "
            "nemotron3_diarization_audio qwen3_next stablelm"
        ),
    ),
    (replace(_PART, default_rope_type_only=True), "recurrent_gemma"),
    (replace(_PART, layout="interleaved"), "glm glm4"),
    (_NESTED, "beam gemma3_text gemma3n_text modernbert modernbert-decoder olmo3 t5gemma2_text ultrabert"),
    (_NESTED, "embedding_gemma2_text gemma4_text gemma4_unified_text lfm3"),
    (replace(_NESTED, partial=True), "laguna mellum step3p5 zaya"),
    (replace(_HALF, rotary_layers="no_rope_layers"), "smollm3"),
    (replace(_PAIRS, rotary_layers="no_rope_layers"), "llama4_text"),
    (replace(_HALF, rotary_layers="sliding"), "afmoe flint"),
    (replace(_PAIRS, rotary_layers="sliding"), "cohere2"),
    (replace(_HALF, rotary_layers="sliding_or_unwindowed"), "exaone4 exaone_moe kolibri1"),
    (replace(_HALF, rotary_layers="layer_rope_theta"), "granite_swa granitemoe_swa"),
    (replace(_HALF, required_attribute=("position_embedding_type", "rope")), "granitemoehybrid"),
    (replace(_HALF, required_attribute=("use_mem_rope", True)), "zamba2"),
    (replace(_LATENT, layout="rope_interleave"), "axk1 deepseek_v3 glm4_moe_lite mistral4 youtu"),
    (_LATENT, "axk2 bailing_hybrid deepseek_v2 deepseek_v32 glm_moe_dsa longcat_flash"),
    (replace(_LATENT, layout="half"), "hy_v4 minicpm3"),
    (replace(_HALF, mrope_layout="chunked"), "paddleocr_vl_text qwen2_5_omni_text qwen2_5_vl_text qwen2_vl_text"),
    (
        replace(_HALF, mrope_layout="interleaved"),
        "cosmos3_edge_text qwen3_omni_moe_talker_text qwen3_omni_moe_text qwen3_vl_moe_text qwen3_vl_text",
    ),
    (replace(_PART, mrope_layout="chunked", layout="interleaved"), "glm4v_text glm_ocr_text"),
    (replace(_PART, mrope_layout="chunked"), "glm4v_moe_text glm_image_text"),
    (replace(_PART, mrope_layout="interleaved"), "qwen3_5_moe_text qwen3_5_text"),
    (
        _GRID,
        (
            "cohere_compass_vision dots3_note_vision_encoder ernie4_5_vl_moe_vision exaone4_5_vision glm4v_moe_vision "
            "glm4v_vision glm5_next_vision glm_ocr_vision lfm3_vl_vision muse_glimmer_vision muse_spark_vision "
            "paddleocr_vl_vision qwen2_5_omni_vision_encoder qwen2_5_vl_vision qwen3_5_moe_vision qwen3_5_vision "
            "qwen3_omni_moe_vision_encoder qwen3_vl_moe_vision qwen3_vl_vision qwen4_exp_vision video_llama_3_vision"
        ),
    ),
    (replace(_GRID, width="embed_dim"), "qwen2_vl_vision"),
    (replace(_GRID, grid=(1, 0)), "step3p5_vision"),
)
ROPE_MODEL_TYPES: dict[str, RopeModelType] = {name: model for model, names in _GROUPS for name in names.split()}

ATTENTION_LAYERS = frozenset(
    {"attention", "chunked_attention", "full_attention", "hybrid", "hybrid_sliding", "indexed_attention"}
    | {"reference_sliding_attention", "sliding_attention", "window_attention"}
)
NON_ATTENTION_LAYERS = frozenset({"conv", "linear_attention", "mamba", "moe", "recurrent"})
