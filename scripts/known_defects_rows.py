"""What public reports say of installed libraries, and what cannot be run here: the rows of `known_defects.py`.

A subject is an architecture of transformers by its name, made tiny, or a driver of a part of an installed library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from orderproof.driver import Driver
from tests.laws.more_faults import installed as part


class Installed(NamedTuple):
    """One report, the architecture or part it is of, and the law that its defect broke."""

    report: str
    symptom: str
    law: str
    subject: str | Callable[[], Driver]
    words: str = ""  # of a part


T, X = "huggingface/transformers", "lucidrains/x-transformers"
LEAK = "a causal model attends to the future: its flag is ignored"
CHUNK = "a prefill in chunks on a cache is wrong: the cached branch is for one token"
MIXED = '["mamba","attention"]'
SHARED = '["sliding_attention","full_attention","sliding_attention","full_attention"]'
STATELESS = "the same in another model: the scan of a chunk takes no state to start from"
ROLLBACK = "a rollback at the window's edge leaves more columns than the mask"
STATES = "with pads on the left the convolution and the state read them"

INSTALLED = (
    *(
        Installed(f"{T}#48745", LEAK, "influence", f"{name}?is_decoder=true")
        for name in ("roformer", "big_bird", "rembert", "megatron-bert")
    ),
    Installed(f"{T}#48748", "leaks the future under SDPA only", "influence", "doge"),
    Installed(f"{T}#48748", "implementations of attention differ", "backend", "doge"),
    Installed(
        f"{T}#48172", "an attention to images is silently causal under SDPA", "influence", part.CrossAttention,
        "cross-attention of Mllama without a mask",
    ),
    *(
        Installed(
            f"{T}#36150", "a setting that it is not causal has no effect", "influence",
            partial(part.LlamaForBothSides, name), f"Llama with is_causal = False, {name}",
        )
        for name in ("eager", "sdpa")
    ),
    Installed(
        f"{T}#40700", "a window for both sides reaches back too far", "influence",
        "gemma3_text?use_bidirectional_attention=true",
    ),
    Installed(f"{T}#39408", "a sliding window sees one token too many (the half of SDPA)", "influence", "mistral"),
    Installed(
        f"{T}#45242", "without a cache layers that share keys are wrong", "cache_switch",
        f"gemma4_text?num_hidden_layers=4&num_kv_shared_layers=2&layer_types={SHARED}",
    ),
    Installed("ml-explore/mlx-lm#322", "the same, in its model of transformers", "cache_switch", "gemma3n_text"),
    Installed(f"{T}#46032", CHUNK, "cache_chunks", "mamba2"),
    Installed(f"{T}#46032", STATELESS, "cache_chunks", "mamba"),
    Installed(f"{T}#46032", STATELESS, "cache_chunks", "falcon_mamba"),
    Installed(f"{T}#46741", CHUNK, "cache_chunks", "zamba2"),
    Installed(f"{T}#46741", CHUNK, "cache_chunks", "falcon_h1"),
    Installed(f"{T}#46741", CHUNK, "cache_chunks", f"nemotron_h?layers_block_type={MIXED}"),
    Installed(
        f"{T}#46741", CHUNK, "cache_chunks", part.bamba_with_positions, "Bamba with position ids in every call"
    ),
    Installed(
        f"{T}#22416", "the same as in RoFormer: default positions start anew on a cache", "default_positions",
        "bamba?attn_layer_indices=[1]",
    ),
    Installed(f"{T}#45513", "a chunk starts its recurrence from nothing", "cache_chunks", "qwen3_5_text"),
    Installed(f"{T}#45513", "a chunk starts its recurrence from nothing", "cache_chunks", "qwen3_next"),
    Installed(f"{T}#37574", "the cache of a window rolls one step early", "cache", "mistral"),
    Installed(f"{T}#38156", "the length of a cache is that of its window", "cache", "gemma3_text"),
    Installed(f"{T}#48280", ROLLBACK, "cache_edits", "mistral"),
    Installed(f"{T}#48280", ROLLBACK, "cache_edits", "gemma3_text"),
    Installed(f"{T}#22416", "positions start anew on a cache", "cache", "roformer?is_decoder=true"),
    Installed(f"{T}#22161", "position ids do not follow the padding", "batch_mates", "gpt_neox"),
    Installed(f"{T}#46773", "padding is not masked in a batch of one row", "batch_mates", "bamba"),
    Installed(f"{T}#41790", STATES, "batch_mates", "lfm2"),
    Installed(f"{T}#32677", STATES, "batch_mates", "mamba"),
    Installed(f"{T}#32677", STATES, "batch_mates", "falcon_mamba"),
    Installed(f"{T}#19265", "two paths count default positions differently", "default_positions", "roberta"),
    Installed("alex-hh/profam#495", "position ids that start anew do not part documents", "packing", "llama"),
    Installed(f"{T}#36013", "an offset of positions is kept from the call before", "stateless", "qwen2_vl"),
    Installed(
        f"{T}#47403", "cosines of one layout, rotation of another", "shift", part.DiffusionAttention,
        "speech decoder's attention of Qwen2.5-Omni",
    ),
    Installed(
        f"{T}#25681", "frequencies are rounded by `.to(dtype)`", "precision", part.llama_that_is_cast,
        "Llama cast to bfloat16",
    ),
    Installed(f"{T}#11242", "no word of the length where positions run out", "range", "roberta"),
    Installed(f"{T}#32154", "no word of the length where positions run out", "range", "clip_text_model"),
    Installed(
        "pytorch/pytorch#86120", "with padding the fast path differs from training", "backend", part.TorchEncoder,
        "torch.nn.TransformerEncoder",
    ),
    Installed(
        "lucidrains/rotary-embedding-torch#11", "an offset is ignored after the first call", "cache",
        part.RotaryEmbeddingTorch, "attention with RotaryEmbedding",
    ),
    Installed(
        f"{X}#219", "junk with a cache", "cache", partial(part.XDecoder, rotary_pos_emb=True), "decoder, rotary"
    ),
    Installed(
        f"{X}#187", "the cache is masked out in SDPA", "cache",
        partial(part.XDecoder, rotary_pos_emb=True, attn_flash=True), "decoder, rotary, flash",
    ),
    Installed(
        f"{X}#103", "the bias is not moved on by the memories", "cache", partial(part.XMemories, rel_pos_bias=True),
        "decoder with memories, T5 bias",
    ),
    Installed(
        f"{X}#242", "the bias is not moved on by the memories", "cache",
        partial(part.XMemories, alibi_pos_bias=True), "decoder with memories, ALiBi",
    ),
    Installed(
        f"{X}#90", "a bias kept from another length", "stateless", partial(part.XDecoder, alibi_pos_bias=True),
        "decoder, ALiBi",
    ),
)  # fmt: skip

GPU = "needs a GPU"
MLX = "MLX, which needs Apple's hardware"
CPP = "C++"
RUST = "Rust"
ELSE = "of another library that is not installed, and its report does not say why"
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
    ("lucidrains/native-sparse-attention-pytorch#20", ELSE),
    ("huggingface/nanotron#241, jzhang38/TinyLlama#24", REFERENCE),
    ("huggingface/pytorch-image-models#2541, facebookresearch/mae#67, huggingface/diffusers#12538", GRID),
    ("facebookresearch/dinov2#333, facebookresearch/dino#8", "a size that is refused, or a wrong one: " + GRID),
    ("huggingface/transformers#29583, ML-GSAI/LLaDA#120", CONTRACT),
    ("huggingface/transformers#10200", "a row of zeros in a table of positions is as distinct as any other row"),
    ("karpathy/nanochat#514", "a crash past the table: an error is an answer, and no law is broken"),
    ("unslothai/unsloth#10681", "at exactly one length another factor: every law holds, only a reference tells"),
    ("hiyouga/LlamaFactory#7318", "documents are kept apart and positions not reset: independence holds"),
)
