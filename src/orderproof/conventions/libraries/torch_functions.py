"""Attention of torch: scaled dot product attention, flex attention without compilation, and `MultiheadAttention`."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.library import AnyFunction, Library
from orderproof.conventions.positions import function as tables
from orderproof.errors import UnsupportedCallError


def _sdpa(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    return scaled_dot_product_attention(
        query, key, value, options.get("mask"), is_causal=options.get("causal", False), scale=options.get("scale"),
        enable_gqa=options.get("grouped", False),
    )  # fmt: skip


def _math(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return _sdpa(query, key, value, **options)


def _flex(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # slow to import

    blocks = None
    if (mask := options.get("mask")) is not None:
        if mask.dtype is not torch.bool:
            raise UnsupportedCallError("a mask function gives booleans")
        rows, heads, queries, keys = (*query.shape[:3], key.shape[2])
        whole = mask[(None,) * (4 - mask.dim())].expand(rows, heads, queries, keys)
        blocks = create_block_mask(lambda b, h, q, kv: whole[b, h, q, kv], rows, heads, queries, keys, device="cpu")
    grouped = options.get("grouped", False)
    found: Tensor = flex_attention(query, key, value, block_mask=blocks, scale=options.get("scale"), enable_gqa=grouped)
    return found


def _multihead(
    query: Tensor, key: Tensor, value: Tensor, *, as_padding: bool = False, need_weights: bool = False, **options: Any
) -> Tensor:
    """`MultiheadAttention` with projections that change nothing; `as_padding`: the mask is its `key_padding_mask`."""
    rows, heads = query.shape[:2]
    width, mask = heads * WIDTH, options.get("mask")
    module = nn.MultiheadAttention(width, heads, bias=False, batch_first=True, dtype=query.dtype)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(width))
    found: Tensor = module(
        *(x.transpose(1, 2).flatten(2) for x in (query, key, value)), need_weights=need_weights,
        key_padding_mask=mask if as_padding else None, attn_mask=None if as_padding else mask,
        is_causal=options.get("causal", False),
    )[0]  # fmt: skip
    return found.view(rows, -1, heads, WIDTH).transpose(1, 2)


def _onnx(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    """The operator of ONNX as torch.onnx computes it in eager mode."""
    from torch.onnx import ops

    found: Tensor = ops.attention(
        query, key, value, options.get("mask"), is_causal=options.get("causal", False), scale=options.get("scale"),
        softcap=options.get("soft_cap", 0.0),
    )[0]  # fmt: skip
    return found


def _functions() -> tuple[AnyFunction, ...]:
    flags, plain = frozenset({"mask", "causal", "scale", "grouped"}), frozenset({"mask", "causal"})
    make = partial(AttentionFunction, version=f"torch {torch.__version__}")
    axes, joined = "[row, head, token, width]", "[row, token, head and width]"
    table = nn.Embedding(tables.LENGTH, tables.WIDTH)
    return (
        tables.PositionTable("embedding", f"torch {torch.__version__}", "[token, width]", table),
        tables.PositionTable("indexing", f"torch {torch.__version__}", "[token, width]", lambda x: table.weight[x]),
        make("sdpa", layout=axes, takes=flags, attend=_sdpa),
        make("sdpa_math", layout=axes, takes=flags, attend=_math),
        make("flex", layout=axes, takes=flags - {"causal"}, attend=_flex),
        make("onnx_attention", layout=axes, takes=flags | {"soft_cap"}, attend=_onnx),
        make("multihead", layout=joined, takes=plain, attend=_multihead),
        make("multihead_weights", layout=joined, takes=plain, attend=partial(_multihead, need_weights=True)),
        make("multihead_padding", layout=joined, takes=plain - {"causal"}, attend=partial(_multihead, as_padding=True)),
    )


LIBRARY = Library("torch", "torch", _functions)
