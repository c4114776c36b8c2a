"""The modules of other packages that `foreign.py` audits: how each is made, and its inputs.

An output has the axes that its case states: b rows, t tokens, any other letter something else. This file does not
import orderproof.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

ROWS, TOKENS, WIDTH = 2, 12, 32


@dataclass(frozen=True)
class Case:
    """One module.

    Attributes:
        package: Its package, as it is imported.
        name: The path of its class in the package.
        make: Makes it from the class.
        inputs: Makes its inputs.
        axes: The axes of its output, one letter each.
        token_axis: The token axis of the first input.

    """

    package: str
    name: str
    make: Callable[[Any], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]
    axes: str = "btd"
    token_axis: int = 1

    @property
    def key(self) -> str:
        """`package.path(number)`."""
        return f"{self.package}.{self.name}"

    def module(self) -> nn.Module:
        """The module with random weights."""
        torch.manual_seed(0)
        target: Any = importlib.import_module(self.package)
        for part in self.name.split("#")[0].split("."):
            if not hasattr(target, part):
                target = importlib.import_module(f"{target.__name__}.{part}")
            else:
                target = getattr(target, part)
        return self.make(target).eval()


def vectors(width: int = WIDTH, tokens: int = TOKENS) -> Callable[[], tuple[Tensor, ...]]:
    """Vectors [row, token, width]."""
    return lambda: (torch.randn(ROWS, tokens, width, generator=torch.Generator().manual_seed(1)),)


def ids(tokens: int = TOKENS, count: int = 64) -> Callable[[], tuple[Tensor, ...]]:
    """Token ids [row, token]."""
    return lambda: (torch.randint(count, (ROWS, tokens), generator=torch.Generator().manual_seed(1)),)


def pairs(other: int = 7) -> Callable[[], tuple[Tensor, ...]]:
    """Vectors, and a second sequence of another length."""
    return lambda: (*vectors()(), torch.randn(ROWS, other, WIDTH, generator=torch.Generator().manual_seed(2)))


D = WIDTH
HEADS = {"heads": 2, "dim_head": 16}
CASES = (
    # x-transformers
    Case("x_transformers", "Encoder", lambda c: c(dim=D, depth=2, heads=2), vectors()),
    Case("x_transformers", "Decoder", lambda c: c(dim=D, depth=2, heads=2), vectors()),
    Case("x_transformers", "Encoder#rotary", lambda c: c(dim=D, depth=1, heads=2, rotary_pos_emb=True), vectors()),
    Case("x_transformers", "Decoder#alibi", lambda c: c(dim=D, depth=1, heads=2, alibi_pos_bias=True), vectors()),
    Case("x_transformers", "Decoder#rel", lambda c: c(dim=D, depth=1, heads=2, rel_pos_bias=True), vectors()),
    Case("x_transformers", "Decoder#topk", lambda c: c(dim=D, depth=1, heads=2, attn_sparse_topk=4), vectors()),
    Case("x_transformers", "Decoder#memory", lambda c: c(dim=D, depth=1, heads=2, attn_num_mem_kv=3), vectors()),
    Case("x_transformers", "Decoder#shift", lambda c: c(dim=D, depth=1, heads=2, shift_tokens=1), vectors()),
    Case("x_transformers", "Encoder#qknorm", lambda c: c(dim=D, depth=1, heads=2, attn_qk_norm=True), vectors()),
    Case("x_transformers", "Encoder#sandwich", lambda c: c(dim=D, depth=2, heads=2, sandwich_coef=1), vectors()),
    Case("x_transformers", "Decoder#macaron", lambda c: c(dim=D, depth=1, heads=2, macaron=True), vectors()),
    Case("x_transformers", "Decoder#glu", lambda c: c(dim=D, depth=1, heads=2, ff_glu=True), vectors()),
    Case("x_transformers", "Decoder#gate", lambda c: c(dim=D, depth=1, heads=2, gate_residual=True), vectors()),
    Case("x_transformers", "Decoder#onehead", lambda c: c(dim=D, depth=1, heads=2, attn_one_kv_head=True), vectors()),
    # vit-pytorch
    Case("vit_pytorch.vit", "Transformer", lambda c: c(D, 2, 2, 16, 64), vectors()),
    Case("vit_pytorch.vit", "Attention", lambda c: c(D, heads=2, dim_head=16), vectors()),
    Case("vit_pytorch.vit", "FeedForward", lambda c: c(D, 64), vectors()),
    Case("vit_pytorch.simple_vit", "Transformer", lambda c: c(D, 1, 2, 16, 64), vectors()),
    Case("vit_pytorch.vit_1d", "Transformer", lambda c: c(D, 1, 2, 16, 64), vectors()),
    Case("vit_pytorch.vit_1d", "ViT", lambda c: c(seq_len=16, patch_size=4, num_classes=5, dim=D, depth=1, heads=2,
         mlp_dim=64, channels=3), lambda: (torch.randn(ROWS, 3, 16),), "bc", 2),
    Case("vit_pytorch.deepvit", "Transformer", lambda c: c(D, 1, 2, 16, 64), vectors()),
    Case("vit_pytorch.cait", "Attention", lambda c: c(D, heads=2, dim_head=16), vectors()),
    Case("vit_pytorch.local_vit", "Attention", lambda c: c(D, heads=2, dim_head=16), vectors()),
    Case("vit_pytorch.parallel_vit", "Transformer", lambda c: c(D, 1, 2, 16, 64), vectors()),
    Case("vit_pytorch.learnable_memory_vit", "Transformer", lambda c: c(D, 1, 2, 16, 64), vectors()),
    Case("vit_pytorch.vit_for_small_dataset", "LSA", lambda c: c(D, heads=2, dim_head=16), vectors()),
    Case("vit_pytorch.sep_vit", "FeedForward", lambda c: c(D), lambda: (torch.randn(ROWS, D, 6, 6),), "bcwt", 3),
    Case("vit_pytorch.na_vit", "Attention", lambda c: c(D, heads=2, dim_head=16), vectors()),
    # efficient attention
    Case("performer_pytorch", "SelfAttention", lambda c: c(dim=D, heads=2, dim_head=16, nb_features=16), vectors()),
    Case("performer_pytorch", "Performer", lambda c: c(dim=D, depth=1, heads=2, dim_head=16, nb_features=16),
         vectors()),
    Case("performer_pytorch", "PerformerLM", lambda c: c(num_tokens=64, max_seq_len=16, dim=D, depth=1, heads=2,
         dim_head=16, nb_features=16), ids(16)),
    Case("linformer", "LinformerSelfAttention", lambda c: c(dim=D, seq_len=12, heads=2, k=4), vectors()),
    Case("linformer", "Linformer", lambda c: c(dim=D, seq_len=12, depth=1, heads=2, k=4), vectors()),
    Case("linformer", "LinformerLM", lambda c: c(num_tokens=64, dim=D, seq_len=12, depth=1, heads=2, k=4), ids()),
    Case("reformer_pytorch", "LSHSelfAttention", lambda c: c(dim=D, heads=2, bucket_size=4, n_hashes=2),
         vectors(tokens=16)),
    Case("local_attention", "LocalMHA", lambda c: c(dim=D, window_size=4, heads=2, dim_head=16), vectors()),
    Case("local_attention", "LocalMHA#causal", lambda c: c(dim=D, window_size=4, heads=2, dim_head=16, causal=True),
         vectors()),
    Case("local_attention", "LocalTransformer", lambda c: c(num_tokens=64, dim=D, depth=1, max_seq_len=16, heads=2,
         dim_head=16, local_attn_window_size=4, causal=True), ids()),
    Case("axial_attention", "AxialAttention", lambda c: c(dim=D, dim_index=2, heads=2, num_dimensions=1), vectors()),
    Case("linear_attention_transformer", "LinearAttentionTransformer", lambda c: c(dim=D, heads=2, depth=1,
         max_seq_len=16), vectors()),
    Case("linear_attention_transformer", "LinearAttentionTransformer#causal", lambda c: c(dim=D, heads=2, depth=1,
         max_seq_len=16, causal=True, blindspot_size=1), vectors()),
    Case("linear_attention_transformer", "LinearAttentionTransformerLM", lambda c: c(num_tokens=64, dim=D, heads=2,
         depth=1, max_seq_len=16), ids()),
    Case("nystrom_attention", "NystromAttention", lambda c: c(dim=D, dim_head=16, heads=2, num_landmarks=4), vectors()),
    Case("nystrom_attention", "Nystromformer", lambda c: c(dim=D, dim_head=16, heads=2, num_landmarks=4, depth=1),
         vectors()),
    Case("memory_efficient_attention_pytorch", "Attention", lambda c: c(dim=D, **HEADS), vectors()),
    Case("memory_efficient_attention_pytorch", "Attention#causal", lambda c: c(dim=D, causal=True, **HEADS), vectors()),
    Case("taylor_series_linear_attention", "TaylorSeriesLinearAttn", lambda c: c(dim=D, dim_head=8, heads=2),
         vectors()),
    Case("agent_attention_pytorch", "AgentSelfAttention", lambda c: c(dim=D, num_agent_tokens=4, **HEADS), vectors()),
    Case("agent_attention_pytorch", "AgentTransformer", lambda c: c(dim=D, num_agent_tokens=4, depth=1, **HEADS),
         vectors()),
    Case("h_transformer_1d", "HTransformer1D", lambda c: c(num_tokens=64, dim=D, depth=1, max_seq_len=16, heads=2,
         dim_head=16, block_size=4, causal=True), ids(16)),
    Case("perceiver_pytorch.perceiver_io", "PerceiverIO", lambda c: c(depth=1, dim=D, queries_dim=D, num_latents=5,
         latent_dim=D, cross_heads=1, latent_heads=2, cross_dim_head=16, latent_dim_head=16), vectors(), "bld"),
    Case("perceiver_pytorch.perceiver_io", "Attention", lambda c: c(D, None, 2, 16), vectors()),
    Case("slot_attention", "SlotAttention", lambda c: c(num_slots=4, dim=D, iters=2), vectors(), "bsd"),
    Case("slot_attention", "MultiHeadSlotAttention", lambda c: c(num_slots=4, dim=D, heads=2, iters=2), vectors(),
         "bsd"),
    # MLPs, convolutions, recurrences
    Case("g_mlp_pytorch", "gMLP", lambda c: c(num_tokens=64, dim=D, depth=1, seq_len=12), ids()),
    Case("g_mlp_pytorch", "gMLP#causal", lambda c: c(num_tokens=64, dim=D, depth=1, seq_len=12, causal=True), ids()),
    Case("g_mlp_pytorch", "SpatialGatingUnit", lambda c: c(dim=D, dim_seq=12), vectors()),
    Case("g_mlp_pytorch", "SpatialGatingUnit#causal", lambda c: c(dim=D, dim_seq=12, causal=True), vectors()),
    Case("mlp_mixer_pytorch.mlp_mixer_pytorch", "PreNormResidual", lambda c: c(D, nn.Conv1d(12, 12, 1)), vectors()),
    Case("conformer", "Conformer", lambda c: c(dim=D, depth=1, heads=2, dim_head=16, conv_kernel_size=5), vectors()),
    Case("conformer", "ConformerConvModule", lambda c: c(dim=D, kernel_size=5), vectors()),
    Case("conformer", "ConformerConvModule#causal", lambda c: c(dim=D, kernel_size=5, causal=True), vectors()),
    Case("conformer.conformer", "Attention", lambda c: c(D, heads=2, dim_head=16), vectors()),
    Case("minGRU_pytorch", "minGRU", lambda c: c(D), vectors()),
    Case("gated_state_spaces_pytorch", "GSS", lambda c: c(dim=D, dim_expansion_factor=2, dss_kernel_N=8,
         dss_kernel_H=8),
         vectors()),
    Case("mega_pytorch", "Mega", lambda c: c(num_tokens=64, dim=D, depth=1), ids()),
    Case("mega_pytorch", "MegaLayer", lambda c: c(dim=D, causal=True), vectors()),
    Case("mega_pytorch", "MegaLayer#both", lambda c: c(dim=D, causal=False), vectors()),
    Case("MEGABYTE_pytorch", "MEGABYTE", lambda c: c(num_tokens=64, dim=(D, D), depth=(1, 1), max_seq_len=(4, 4),
         heads=2, dim_head=16), ids(16)),
    Case("block_recurrent_transformer_pytorch", "BlockRecurrentTransformer", lambda c: c(num_tokens=64, dim=D, depth=1,
         max_seq_len=16, block_width=8, num_state_vectors=4, heads=2, dim_head=16, recurrent_layers=(1,)), ids(16)),
    # experts, tables, others
    Case("soft_moe_pytorch", "SoftMoE", lambda c: c(dim=D, seq_len=12, num_experts=3), vectors()),
    Case("soft_moe_pytorch", "DynamicSlotsSoftMoE", lambda c: c(dim=D, num_experts=3), vectors()),
    Case("st_moe_pytorch", "MoE", lambda c: c(dim=D, num_experts=4), vectors()),
    Case("bidirectional_cross_attention", "BidirectionalCrossAttention", lambda c: c(dim=D, heads=2, dim_head=16),
         pairs()),
    Case("tab_transformer_pytorch.tab_transformer_pytorch", "Transformer", lambda c: c(dim=D, depth=1, heads=2,
         dim_head=16, attn_dropout=0.0, ff_dropout=0.0), vectors()),
    Case("iTransformer", "iTransformer", lambda c: c(num_variates=5, lookback_len=12, dim=D, depth=1, heads=2,
         dim_head=16, pred_length=4), lambda: (torch.randn(ROWS, 12, 5),), "bpv"),
    Case("axial_positional_embedding", "AxialPositionalEmbedding", lambda c: c(dim=D, axial_shape=(4, 4)), vectors()),
    # torch's own
    Case("torch.nn", "LSTM", lambda c: c(D, D, 2, batch_first=True), vectors()),
    Case("torch.nn", "LSTM#first", lambda c: c(D, D, 2), lambda: (torch.randn(TOKENS, ROWS, D),), "tbd", 0),
    Case("torch.nn", "LSTM#both", lambda c: c(D, D, 1, batch_first=True, bidirectional=True), vectors()),
    Case("torch.nn", "GRU", lambda c: c(D, D, 2, batch_first=True), vectors()),
    Case("torch.nn", "RNN", lambda c: c(D, D, 1, batch_first=True), vectors()),
    Case("torch.nn", "TransformerEncoderLayer", lambda c: c(D, 2, 64, batch_first=True), vectors()),
    Case("torch.nn", "TransformerEncoderLayer#first", lambda c: c(D, 2, 64), lambda: (torch.randn(TOKENS, ROWS, D),),
         "tbd", 0),
    Case("torch.nn", "TransformerDecoderLayer", lambda c: c(D, 2, 64, batch_first=True), pairs()),
    Case("torch.nn", "Conv1d", lambda c: c(D, D, 3, padding=1), lambda: (torch.randn(ROWS, D, TOKENS),), "bdt", 2),
    Case("torch.nn", "Conv1d#points", lambda c: c(D, D, 1), lambda: (torch.randn(ROWS, D, TOKENS),), "bdt", 2),
    Case("torch.nn", "BatchNorm1d", lambda c: c(D, track_running_stats=False), lambda: (torch.randn(ROWS, D, TOKENS),),
         "bdt", 2),
    Case("torch.nn", "InstanceNorm1d", lambda c: c(D), lambda: (torch.randn(ROWS, D, TOKENS),), "bdt", 2),
    Case("torch.nn", "AdaptiveAvgPool1d", lambda c: c(1), lambda: (torch.randn(ROWS, D, TOKENS),), "bdx", 2),
)  # fmt: skip
