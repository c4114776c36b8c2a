"""Modules of other packages that `foreign.py` audits: models of sequences, and further layers of torch."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from foreign_case import ROWS, TOKENS, WIDTH, Case, ids, vectors
from torch import nn

D = WIDTH
HEADS = {"heads": 2, "dim_head": 16}
LM = {"num_tokens": 64, "dim": D, "depth": 1, **HEADS}


def config_of(module: str, name: str, **values: Any) -> Any:
    """The configuration that a module is made from."""
    return getattr(importlib.import_module(module), name)(**values)


def first(width: int = D) -> Any:
    """Vectors [token, row, width]."""
    return lambda: (torch.randn(TOKENS, ROWS, width, generator=torch.Generator().manual_seed(1)),)


def channels() -> Any:
    """Vectors [row, width, token]."""
    return lambda: (torch.randn(ROWS, D, TOKENS, generator=torch.Generator().manual_seed(1)),)


SEQUENCE_MODELS = (
    # attention without a softmax over pairs
    Case("aft_pytorch", "AFTFull", lambda c: c(16, D, 16), vectors()),
    Case("aft_pytorch", "AFTSimple", lambda c: c(16, D, 16), vectors()),
    Case("flash_pytorch", "GAU", lambda c: c(dim=D, query_key_dim=16), vectors()),
    Case("flash_pytorch", "GAU#causal", lambda c: c(dim=D, query_key_dim=16, causal=True), vectors()),
    Case("flash_pytorch", "FLASH", lambda c: c(dim=D, group_size=4, query_key_dim=16), vectors()),
    Case("flash_pytorch", "FLASH#causal", lambda c: c(dim=D, group_size=4, query_key_dim=16, causal=True), vectors()),
    Case("flash_pytorch", "FLASHTransformer", lambda c: c(dim=D, num_tokens=64, depth=1, group_size=4, query_key_dim=16,
         causal=True), ids()),
    Case("remixer_pytorch", "RemixerBlock", lambda c: c(D, 12), vectors()),
    Case("remixer_pytorch", "RemixerBlock#causal", lambda c: c(D, 12, causal=True), vectors()),
    Case("entmax", "Sparsemax", lambda c: c(dim=-1), vectors()),
    Case("entmax", "Entmax15", lambda c: c(dim=1), vectors()),
    # attention
    Case("compositional_attention_pytorch", "CompositionalAttention", lambda c: c(dim=D, dim_head=16, num_searches=2,
         num_retrievals=2), vectors()),
    Case("isab_pytorch", "ISAB", lambda c: c(dim=D, heads=2, num_latents=4), vectors()),
    Case("native_sparse_attention_pytorch", "SparseAttention", lambda c: c(dim=D, sliding_window_size=2,
         compress_block_size=4, compress_block_sliding_stride=2, selection_block_size=4, num_selected_blocks=2,
         causal=True, **HEADS), vectors()),
    Case("sinkhorn_transformer", "SinkhornSelfAttention", lambda c: c(D, 4, 16, heads=2), vectors(tokens=16)),
    Case("sinkhorn_transformer", "SinkhornTransformerLM", lambda c: c(num_tokens=64, dim=D, max_seq_len=16, depth=1,
         heads=2, bucket_size=4, causal=True), ids(16)),
    Case("routing_transformer", "RoutingTransformerLM", lambda c: c(max_seq_len=16, window_size=4, **LM), ids(16)),
    Case("gateloop_transformer", "CausalFullAttention", lambda c: c(D, **HEADS), vectors()),
    Case("hourglass_transformer_pytorch", "HourglassTransformer", lambda c: c(D, depth=(1, 1, 1), causal=True, **HEADS),
         vectors()),
    Case("hourglass_transformer_pytorch", "HourglassTransformer#both", lambda c: c(D, depth=(1, 1, 1), **HEADS),
         vectors()),
    Case("infini_transformer_pytorch", "InfiniTransformer", lambda c: c(**LM), ids()),
    Case("recurrent_memory_transformer_pytorch", "RecurrentMemoryTransformer", lambda c: c(D, num_tokens=64, depth=1,
         num_memory_tokens=2, seq_len=12, use_flash_attn=False, **HEADS), ids()),
    Case("compressive_transformer_pytorch", "CompressiveTransformer", lambda c: c(num_tokens=64, dim=D, depth=1,
         seq_len=12, mem_len=12, heads=2), ids()),
    Case("feedback_transformer_pytorch", "FeedbackTransformer", lambda c: c(mem_len=4, seq_len=2, **LM), ids()),
    Case("esm.modules", "TransformerLayer", lambda c: c(D, 64, 2, add_bias_kv=False), first(), "tbd", 0),
    Case("esm.modules", "TransformerLayer#rotary", lambda c: c(D, 64, 2, use_rotary_embeddings=True), first(), "tbd",
         0),
    Case("esm.modules", "FeedForwardNetwork", lambda c: c(D, 64), vectors()),
    Case("esm.model.esm2", "ESM2", lambda c: c(num_layers=1, embed_dim=D, attention_heads=2), ids(count=30)),
    # recurrences and convolutions
    Case("yet_another_retnet.retnet", "RetNetDecoderLayer", lambda c: c(D, 2, 64), vectors()),
    Case("torchscale.component.multihead_attention", "XPOS", lambda c: c(D), vectors()),
    Case("mambapy.mamba", "MambaBlock", lambda c: c(config_of("mambapy.mamba", "MambaConfig", d_model=D, n_layers=1,
         d_state=4)), vectors()),
    Case("mambapy.mamba", "Mamba", lambda c: c(config_of("mambapy.mamba", "MambaConfig", d_model=D, n_layers=1,
         d_state=4, pscan=False)), vectors()),
    Case("xlstm", "mLSTMLayer", lambda c: c(config_of("xlstm", "mLSTMLayerConfig", embedding_dim=D, context_length=12,
         num_heads=2, conv1d_kernel_size=4)), vectors()),
    Case("light_recurrent_unit_pytorch", "LightRecurrentUnitLayer", lambda c: c(D), vectors()),
    Case("light_recurrent_unit_pytorch", "LightRecurrentUnitBlock", lambda c: c(D), vectors()),
    Case("gateloop_transformer", "SimpleGateLoopLayer", lambda c: c(D), vectors()),
    Case("gateloop_transformer", "GateLoopedAttention", lambda c: c(D, heads=2), vectors()),
    Case("etsformer_pytorch", "MHESA", lambda c: c(dim=D, heads=2), vectors()),
    Case("ncps.torch", "CfC", lambda c: c(D, 16), vectors()),
    Case("ncps.torch", "LTC", lambda c: c(D, 16), vectors()),
    Case("pytorch_tcn", "TCN", lambda c: c(D, [16, 16], kernel_size=3), channels(), "bct", 2),
    Case("pytorch_tcn", "TCN#both", lambda c: c(D, [16, 16], kernel_size=3, causal=False), channels(), "bct", 2),
    # experts and memories
    Case("mixture_of_experts", "MoE", lambda c: c(dim=D, num_experts=4), vectors()),
    Case("product_key_memory", "PKM", lambda c: c(D, heads=2, num_keys=8, topk=4, dim_head=8), vectors()),
    Case("colt5_attention", "ConditionalRoutedFeedForward", lambda c: c(D, num_heavy_tokens=4), vectors()),
    Case("x_mlps_pytorch", "Feedforwards", lambda c: c(D, 2), vectors()),
    # torch's own
    Case("torch.nn", "EmbeddingBag", lambda c: c(64, D, mode="mean"), ids(), "bd"),
    Case("torch.nn", "ConvTranspose1d", lambda c: c(D, D, 3, padding=1), channels(), "bdt", 2),
    Case("torch.nn", "GroupNorm", lambda c: c(4, D), channels(), "bdt", 2),
    Case("torch.nn", "Softmax", lambda c: c(dim=1), vectors()),
    Case("torch.nn", "RNN#both", lambda c: c(D, D, 1, batch_first=True, bidirectional=True), vectors()),
    Case("torch.nn", "TransformerEncoder", lambda c: c(nn.TransformerEncoderLayer(D, 2, 64, batch_first=True), 2),
         vectors()),
)  # fmt: skip
