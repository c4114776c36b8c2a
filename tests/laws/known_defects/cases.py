"""What public reports say of installed libraries, and what cannot be run here: the rows of `known_defects.py`.

A subject is an architecture of transformers by its name, made tiny, or a driver of a part of an installed library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from orderproof.adapter import ModelAdapter
from tests.laws.faults import library_parts as part


class LibraryCase(NamedTuple):
    """One report, the architecture or part it is of, and the law that its defect broke."""

    report: str
    symptom: str
    law: str
    subject: str | Callable[[], ModelAdapter]
    part_name: str = ""  # of a part


TRANSFORMERS, X_TRANSFORMERS = "huggingface/transformers", "lucidrains/x-transformers"
LEAK = "a causal model attends to the future: its flag is ignored"
CHUNK = "a prefill in chunks on a cache is wrong: the cached branch is for one token"
MIXED = '["mamba","attention"]'
SHARED = '["sliding_attention","full_attention","sliding_attention","full_attention"]'
STATELESS = "the same in another model: the scan of a chunk takes no state to start from"
ROLLBACK = "a rollback at the window's edge leaves more columns than the mask"
STATES = "with pads on the left the convolution and the state read them"

LIBRARY_CASES = (
    *(
        LibraryCase(f"{TRANSFORMERS}#48745", LEAK, "attention_pattern", f"{name}?is_decoder=true")
        for name in ("roformer", "big_bird", "rembert", "megatron-bert")
    ),
    LibraryCase(f"{TRANSFORMERS}#48748", "leaks the future under SDPA only", "attention_pattern", "doge"),
    LibraryCase(f"{TRANSFORMERS}#48748", "implementations of attention differ", "attention_backend", "doge"),
    LibraryCase(
        f"{TRANSFORMERS}#48172",
        "an attention to images is silently causal under SDPA",
        "attention_pattern",
        part.CrossAttention,
        "cross-attention of Mllama without a mask",
    ),
    *(
        LibraryCase(
            f"{TRANSFORMERS}#36150",
            "a setting that it is not causal has no effect",
            "attention_pattern",
            partial(part.LlamaForBothSides, name),
            f"Llama with is_causal = False, {name}",
        )
        for name in ("eager", "sdpa")
    ),
    LibraryCase(
        f"{TRANSFORMERS}#40700",
        "a window for both sides reaches back too far",
        "attention_pattern",
        "gemma3_text?use_bidirectional_attention=true",
    ),
    LibraryCase(
        f"{TRANSFORMERS}#39408",
        "a sliding window sees one token too many (the half of SDPA)",
        "attention_pattern",
        "mistral",
    ),
    LibraryCase(
        f"{TRANSFORMERS}#45242",
        "without a cache layers that share keys are wrong",
        "use_cache",
        f"gemma4_text?num_hidden_layers=4&num_kv_shared_layers=2&layer_types={SHARED}",
    ),
    LibraryCase("ml-explore/mlx-lm#322", "the same, in its model of transformers", "use_cache", "gemma3n_text"),
    LibraryCase(f"{TRANSFORMERS}#46032", CHUNK, "chunked_prefill", "mamba2"),
    LibraryCase(f"{TRANSFORMERS}#46032", STATELESS, "chunked_prefill", "mamba"),
    LibraryCase(f"{TRANSFORMERS}#46032", STATELESS, "chunked_prefill", "falcon_mamba"),
    LibraryCase(f"{TRANSFORMERS}#46032", STATELESS, "chunked_prefill", "jamba"),
    LibraryCase(f"{TRANSFORMERS}#46741", CHUNK, "chunked_prefill", "zamba2"),
    LibraryCase(f"{TRANSFORMERS}#46741", CHUNK, "chunked_prefill", "falcon_h1"),
    LibraryCase(f"{TRANSFORMERS}#46741", CHUNK, "chunked_prefill", f"nemotron_h?layers_block_type={MIXED}"),
    LibraryCase(
        f"{TRANSFORMERS}#46741",
        CHUNK,
        "chunked_prefill",
        part.bamba_with_positions,
        "Bamba with position ids in every call",
    ),
    LibraryCase(
        f"{TRANSFORMERS}#22416",
        "the same as in RoFormer: default positions restart on a cache",
        "default_position_ids",
        "bamba",
    ),
    LibraryCase(
        f"{TRANSFORMERS}#45513", "a chunk starts its recurrence from nothing", "chunked_prefill", "qwen3_5_text"
    ),
    LibraryCase(f"{TRANSFORMERS}#45513", "a chunk starts its recurrence from nothing", "chunked_prefill", "qwen3_next"),
    LibraryCase(f"{TRANSFORMERS}#37574", "the cache of a window rolls one step early", "cached_decoding", "mistral"),
    LibraryCase(
        f"{TRANSFORMERS}#38156", "the length of a cache is that of its window", "cached_decoding", "gemma3_text"
    ),
    LibraryCase(f"{TRANSFORMERS}#48280", ROLLBACK, "cache_editing", "mistral"),
    LibraryCase(f"{TRANSFORMERS}#48280", ROLLBACK, "cache_editing", "gemma3_text"),
    LibraryCase(f"{TRANSFORMERS}#22416", "positions restart on a cache", "cached_decoding", "roformer?is_decoder=true"),
    LibraryCase(f"{TRANSFORMERS}#22161", "position ids do not follow the padding", "batch_composition", "gpt_neox"),
    LibraryCase(f"{TRANSFORMERS}#46773", "padding is not masked in a batch of one row", "batch_composition", "bamba"),
    LibraryCase(f"{TRANSFORMERS}#41790", STATES, "batch_composition", "lfm2"),
    LibraryCase(f"{TRANSFORMERS}#32677", STATES, "batch_composition", "mamba"),
    LibraryCase(f"{TRANSFORMERS}#32677", STATES, "batch_composition", "falcon_mamba"),
    LibraryCase(
        f"{TRANSFORMERS}#19265", "two paths count default positions differently", "default_position_ids", "roberta"
    ),
    LibraryCase("alex-hh/profam#495", "position ids that restart do not part documents", "packing", "llama"),
    LibraryCase(
        f"{TRANSFORMERS}#36013", "an offset of positions is kept from the call before", "stateless", "qwen2_vl"
    ),
    LibraryCase(
        f"{TRANSFORMERS}#47403",
        "cosines of one layout, rotation of another",
        "position_shift",
        part.DiffusionAttention,
        "speech decoder's attention of Qwen2.5-Omni",
    ),
    LibraryCase(
        f"{TRANSFORMERS}#25681",
        "frequencies are rounded by `.to(dtype)`",
        "position_precision",
        part.llama_that_is_cast,
        "Llama cast to bfloat16",
    ),
    LibraryCase(f"{TRANSFORMERS}#11242", "no word of the length where positions run out", "context_length", "roberta"),
    LibraryCase(
        f"{TRANSFORMERS}#32154", "no word of the length where positions run out", "context_length", "clip_text_model"
    ),
    LibraryCase(
        "pytorch/pytorch#86120",
        "with padding the fast path differs from training",
        "attention_backend",
        part.TorchEncoder,
        "torch.nn.TransformerEncoder",
    ),
    LibraryCase(
        "lucidrains/rotary-embedding-torch#11",
        "an offset is ignored after the first call",
        "cached_decoding",
        part.RotaryEmbeddingTorch,
        "attention with RotaryEmbedding",
    ),
    LibraryCase(
        f"{X_TRANSFORMERS}#219",
        "junk with a cache",
        "cached_decoding",
        partial(part.XDecoder, rotary_pos_emb=True),
        "decoder, rotary",
    ),
    LibraryCase(
        f"{X_TRANSFORMERS}#187",
        "the cache is masked out in SDPA",
        "cached_decoding",
        partial(part.XDecoder, rotary_pos_emb=True, attn_flash=True),
        "decoder, rotary, flash",
    ),
    LibraryCase(
        f"{X_TRANSFORMERS}#103",
        "the bias is not moved on by the memories",
        "cached_decoding",
        partial(part.XMemories, rel_pos_bias=True),
        "decoder with memories, T5 bias",
    ),
    LibraryCase(
        f"{X_TRANSFORMERS}#242",
        "the bias is not moved on by the memories",
        "cached_decoding",
        partial(part.XMemories, alibi_pos_bias=True),
        "decoder with memories, ALiBi",
    ),
    LibraryCase(
        f"{X_TRANSFORMERS}#90",
        "a bias kept from another length",
        "stateless",
        partial(part.XDecoder, alibi_pos_bias=True),
        "decoder, ALiBi",
    ),
)

GPU = "needs a GPU"
MLX = "MLX, which needs Apple's hardware"
CPP = "C++"
RUST = "Rust"
OTHER_LIBRARY = "of another library that is not installed, and its report does not say why"
REFERENCE = "every law holds in a layout that is used throughout and wrong: only a reference model tells"
GRID = "no law of ours swaps height and width yet"
CONTRACT = "a documented contract: position ids are the caller's to give"

NOT_RUN = (
    ("vllm-project/vllm#51756, #10388", GPU),
    ("huggingface/transformers#39408 (FlashAttention), #29623 (its half), #46588, #39814, #44911", GPU),
    ("ROCm/flash-attention#158, Lightning-AI/litgpt#298", GPU),
    ("axolotl-ai-cloud/axolotl#1375, NovaSky-AI/SkyRL#2056, PrimeIntellect-ai/prime-rl#3000", GPU),
    ("HabanaAI/vllm-fork#2117, vllm-project/vllm-ascend#12820", "needs an accelerator of another kind"),
    ("ml-explore/mlx-lm#1674, #1906, #1699, #439", MLX),
    ("Blaizzy/mlx-vlm#1542, oxiglade/mlx-rs#359, jjang-ai/vmlx#113", MLX),
    ("ggml-org/llama.cpp#3825, #14742, #7481; OpenNMT/CTranslate2#1572", CPP),
    ("lucidrains/native-sparse-attention-pytorch#20", OTHER_LIBRARY),
    ("huggingface/nanotron#241, jzhang38/TinyLlama#24", REFERENCE),
    ("huggingface/pytorch-image-models#2541, facebookresearch/mae#67, huggingface/diffusers#12538", GRID),
    ("facebookresearch/dinov2#333, facebookresearch/dino#8", "a size that is refused, or a wrong one: " + GRID),
    ("huggingface/transformers#29583, ML-GSAI/LLaDA#120", CONTRACT),
    ("huggingface/transformers#10200", "a row of zeros in a table of positions is as distinct as any other row"),
    ("karpathy/nanochat#514", "a crash past the table: an error is an answer, and no law is broken"),
    ("unslothai/unsloth#10681", "at exactly one length another factor: every law holds, only a reference tells"),
    ("hiyouga/LlamaFactory#7318", "documents are kept apart and positions not reset: independence holds"),
)
