"""The attention pattern of a transformers model, from what its configuration says of each layer.

    full       every token; in a causal model every token up to the query
    sliding    window w: keys with  query - w < key <= query ; in a bidirectional model  |query - key| <= w, or what the
               modelling file says itself: < w in Gemma 3
    chunked    chunk c: the keys of the query's chunk of c tokens, up to the query

Layers compose: output i depends on input j where a path leads from i down to j. The configuration does not determine
the pattern of other layers (recurrences, convolutions, top-k attention). Then the pattern of a causal model is bounded
by the causal mask, each token must see itself only, and the pattern of a bidirectional model is unknown.
Source: transformers 5.23, `masking_utils`: sliding_window_overlay, sliding_window_bidirectional_overlay,
chunked_overlay.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from orderproof.adapter import AttentionPattern
from orderproof.models.hf.class_source import class_source
from orderproof.models.hf.context_spans import context_spans

FULL_ATTENTION = "full_attention"
WINDOW_KEYS = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
LAYER_TYPES = (FULL_ATTENTION, *WINDOW_KEYS)
_BIAS_SPANS = re.compile(r"bucket|max_distance|rel_extent")  # spans of a relative bias, which masks nothing
_NON_ATTENTION_CLASSES = re.compile(  # classes that mix tokens without attention, or attend to selected keys
    r"Mamba|Rwkv|Recurrent|SSM|LSTM|GRU|Delta|Lightning|Retention|Indexer|LSH|Nystrom|Mra|Yoso|SparseAtt|Compress"
    r"|Linear_?Att"
)
OWN_WINDOW_MASK = "_bidirectional_window_overlay"  # a function of a modelling file: (window) -> mask function
_CUSTOM_MASK_SOURCE = re.compile(r"\bblock_sequence_ids=|\bdirectional_mask")


class AttentionLayer(NamedTuple):
    """The mask of one layer."""

    layer_type: str  # one of LAYER_TYPES
    span: int = 0  # the window or the chunk [tokens]; 0 for full attention


def attention_pattern(layers: Sequence[AttentionLayer] | None, tokens: int, *, causal: bool) -> AttentionPattern | None:
    """The pattern of the whole model [token, token]; None where it is unknown (see the module)."""
    identity = torch.eye(tokens, dtype=torch.bool)
    if layers is None:
        everything = torch.ones(tokens, tokens, dtype=torch.bool)
        return AttentionPattern(everything.tril(), identity) if causal else None
    visible = identity
    for layer in layers:
        visible = (_layer_mask(layer, tokens, causal=causal).float() @ visible.float()) > 0
    return AttentionPattern(visible, visible)


def configured_layers(config: Any, layer_types: Sequence[str] | None = None) -> tuple[AttentionLayer, ...] | str:
    """The layers that a text configuration names, or the reason why their masks are unknown.

    ``layer_types`` replaces those of the configuration.
    """
    types = layer_types if layer_types is not None else getattr(config, "layer_types", None)
    if types is None:
        window = getattr(config, "sliding_window", None)
        sliding = isinstance(window, int) and getattr(config, "use_sliding_window", True)
        count = config.num_hidden_layers if isinstance(getattr(config, "num_hidden_layers", None), int) else 1
        types = ["sliding_attention" if sliding else FULL_ATTENTION] * count
    layers = []
    for layer_type in types:
        span = 0 if layer_type == FULL_ATTENTION else getattr(config, WINDOW_KEYS.get(layer_type, ""), None)
        if not isinstance(span, int):
            return f"layers of type {layer_type!r}"
        layers.append(AttentionLayer(layer_type, span))
    return tuple(layers)


def with_own_windows(layers: Sequence[AttentionLayer], model: nn.Module) -> tuple[AttentionLayer, ...]:
    """The layers of a bidirectional model, with windows as the mask function of its modelling file has them."""
    overlay = getattr(sys.modules.get(type(model).__module__), OWN_WINDOW_MASK, None)
    if overlay is None:
        return tuple(layers)
    windows = {layer.span for layer in layers if layer.layer_type == "sliding_attention"}
    distance = {w: max(d for d in range(w + 2) if d == 0 or bool(overlay(w)(0, 0, 0, d))) for w in windows}
    return tuple(
        layer._replace(span=distance[layer.span]) if layer.layer_type == "sliding_attention" else layer
        for layer in layers
    )


def other_token_mixing(model: nn.Module, config: Any) -> str:
    """Parts that may mix tokens other than by attention with a configured mask; an empty text if there are none."""
    spans = {key for key in context_spans(config) if not _BIAS_SPANS.search(key)}
    if other := sorted(spans - {*WINDOW_KEYS.values(), "local_attention"}):
        return f"the configuration key {other[0]}"
    if getattr(config, "trigram_input", False):
        return "the configuration key trigram_input"
    for part in model.modules():
        part_class: Any = type(part)
        if isinstance(part, nn.modules.conv._ConvNd) and max(part.kernel_size) > 1:
            return f"a convolution of kernel size {max(part.kernel_size)}"
        if _NON_ATTENTION_CLASSES.search(part_class.__name__):
            return f"the class name {part_class.__name__}"
        if _CUSTOM_MASK_SOURCE.search(_source_in_library(part_class)):
            return f"the mask in the source of {part_class.__name__}"
    return ""


def _layer_mask(layer: AttentionLayer, tokens: int, *, causal: bool) -> Tensor:
    query, key = torch.arange(tokens).unsqueeze(-1), torch.arange(tokens)
    visible = (key <= query) if causal else torch.ones(tokens, tokens, dtype=torch.bool)
    if layer.layer_type == "sliding_attention":
        return visible & ((key > query - layer.span) if causal else (query - key).abs() <= layer.span)
    if layer.layer_type == "chunked_attention":
        return visible & (key // layer.span == query // layer.span)
    return visible


def causal_padding_mask(real: Tensor) -> Tensor:
    """The additive causal mask [batch, 1, token, token] of a padding mask [batch, token], True at real tokens.

    A pad attends to itself, because the softmax over an empty row is undefined.
    """
    count = real.shape[1]
    visible = torch.ones(count, count, dtype=torch.bool).tril() & real.unsqueeze(1)
    visible = (visible | torch.eye(count, dtype=torch.bool)).unsqueeze(1)
    return torch.zeros(visible.shape).masked_fill(~visible, torch.finfo(torch.float32).min)


def _source_in_library(part_class: Any) -> str:
    return class_source(part_class) if part_class.__module__.startswith("transformers.models") else ""
