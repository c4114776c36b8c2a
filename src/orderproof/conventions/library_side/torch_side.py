"""Attention of torch: scaled dot product attention, flex attention, `MultiheadAttention`, and the operators of ONNX."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

PACKAGE = "torch"
REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6")
ARRAYS = "torch"
LENGTH, WIDTH = 16, 8  # of a table


def sdpa(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    """Scaled dot product attention."""
    return scaled_dot_product_attention(
        query, key, value, options.get("mask"), is_causal=options.get("causal", False), scale=options.get("scale"),
        enable_gqa=options.get("grouped", False),
    )  # fmt: skip


def _on(backend: SDPBackend, query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    with sdpa_kernel(backend):
        return sdpa(query, key, value, **options)


def flex(query: Tensor, key: Tensor, value: Tensor, *, attend: Any = None, **options: Any) -> Tensor:
    """Flex attention; `attend`: another form of it, as compiled."""
    from torch.nn.attention.flex_attention import flex_attention  # slow to import

    blocks = None
    if (mask := options.get("mask")) is not None:
        if mask.dtype is not torch.bool:
            raise TypeError("a mask function gives booleans")
        blocks = _blocks(tuple(mask.flatten().tolist()), mask.shape, *query.shape[:3], key.shape[2])
    function, grouped = attend or flex_attention, options.get("grouped", False)
    found: Tensor = function(query, key, value, block_mask=blocks, scale=options.get("scale"), enable_gqa=grouped)
    return found


@lru_cache(maxsize=4)  # one mask is asked about in several dtypes
def _blocks(values: tuple[bool, ...], shape: tuple[int, ...], rows: int, heads: int, queries: int, keys: int) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    whole = torch.tensor(values).view(shape)[(None,) * (4 - len(shape))].expand(rows, heads, queries, keys)
    mask = whole.contiguous()  # masks of equal axes are traced once
    return create_block_mask(lambda b, h, q, kv: mask[b, h, q, kv], rows, heads, queries, keys, device="cpu")


def _multihead(
    query: Tensor, key: Tensor, value: Tensor, *, as_padding: bool = False, need_weights: bool = False,
    fast: bool = False, **options: Any,
) -> Tensor:  # fmt: skip
    """`MultiheadAttention` with projections that change nothing; `as_padding`: the mask is its `key_padding_mask`.

    `fast`: in eval mode with biases and query = key = value it takes its fast path, so all are the values here.
    """
    rows, heads, _, size = query.shape
    width, mask = heads * size, options.get("mask")
    module = nn.MultiheadAttention(width, heads, bias=fast, batch_first=True, dtype=query.dtype).train(not fast)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(width))
        if fast:
            module.in_proj_weight[: 2 * width] = 0.0  # equal scores: queries and keys are zeros
    given = [x.transpose(1, 2).flatten(2) for x in (query, key, value)]
    found: Tensor = module(
        *([given[2]] * 3 if fast else given), need_weights=need_weights,
        key_padding_mask=mask if as_padding else None, attn_mask=None if as_padding else mask,
        is_causal=options.get("causal", False),
    )[0]  # fmt: skip
    return found.view(rows, -1, heads, size).transpose(1, 2)


def _onnx(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    """The operator of ONNX as torch.onnx computes it in eager mode."""
    from torch.onnx import ops

    past = options.get("past", (None, None))
    found: Tensor = ops.attention(
        query, key, value, options.get("mask"), *past, is_causal=options.get("causal", False),
        scale=options.get("scale"), softcap=options.get("soft_cap", 0.0),
    )[0]  # fmt: skip
    return found


def _onnx_rotary(x: Tensor, positions: Tensor, *, interleaved: bool) -> Tensor:
    from torch.onnx import ops

    width = x.shape[-1]
    angles = torch.arange(int(positions.max()) + 1)[:, None] * 10_000.0 ** (-torch.arange(0, width, 2) / width)
    rows = positions.expand(x.shape[0], -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    found: Tensor = ops.rotary_embedding(x, cos, sin, rows, interleaved=interleaved)
    return found


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    flags, axes, joined = "mask causal scale grouped", "[row, head, token, width]", "[row, token, head and width]"
    table = nn.Embedding(LENGTH, WIDTH)
    found: dict[str, Any] = {
        "embedding": ("positions", "", "[token, width]", table),
        "indexing": ("positions", "", "[token, width]", lambda positions: table.weight[positions]),
        "sdpa": ("attention", flags, axes, sdpa),
        "sdpa_math": ("attention", flags, axes, partial(_on, SDPBackend.MATH)),
        "sdpa_flash": ("attention", flags, axes, partial(_on, SDPBackend.FLASH_ATTENTION)),
        "flex": ("attention", "mask scale grouped", axes, flex),
        "multihead": ("attention", "mask causal", joined, _multihead),
        "multihead_weights": ("attention", "mask causal", joined, partial(_multihead, need_weights=True)),
        "multihead_padding": ("attention", "mask", joined, partial(_multihead, as_padding=True)),
        "multihead_fast": ("attention", "mask scores", joined, partial(_multihead, fast=True)),
    }
    if hasattr(torch.onnx, "ops"):
        found |= {
            "onnx_attention": ("attention", f"{flags} soft_cap past", axes, _onnx),
            "onnx_rotary": ("rotation", "rows", axes, partial(_onnx_rotary, interleaved=False)),
            "onnx_rotary_interleaved": ("rotation", "rows", axes, partial(_onnx_rotary, interleaved=True)),
        }
    return found
