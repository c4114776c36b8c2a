"""Attention of Paddle, and its table."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

PACKAGE = "paddle"
REQUIREMENTS = ("paddlepaddle==3.3.1", "numpy==2.4.6")
LENGTH, WIDTH = 16, 8  # of a table


def array(given: Any) -> Any:
    """A tensor of the library."""
    return paddle.to_tensor(np.ascontiguousarray(given.values)).astype(given.dtype)


def numbers(found: Any) -> Any:
    """Numbers in float32, and the dtype of a tensor."""
    return found.astype("float32").numpy(), str(found.dtype).rpartition(".")[2]


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    moved = [x.transpose([0, 2, 1, 3]) for x in (query, key, value)]
    more = {"scale": options["scale"]} if "scale" in options else {}
    found = functional.scaled_dot_product_attention(
        *moved, attn_mask=options.get("mask"), is_causal=options.get("causal", False), training=False, **more
    )
    return found.transpose([0, 2, 1, 3])


def _multihead(query: Any, key: Any, value: Any, **options: Any) -> Any:
    rows, heads, _, width = query.shape
    size = heads * width
    module = nn.MultiHeadAttention(size, heads, bias_attr=False)
    for part in (module.q_proj, module.k_proj, module.v_proj, module.out_proj):
        part.weight.set_value(paddle.eye(size))
    module.eval()
    module.astype(query.dtype)
    given = [x.transpose([0, 2, 1, 3]).reshape([rows, -1, size]) for x in (query, key, value)]
    found = module(*given, attn_mask=options.get("mask"))
    return found.reshape([rows, -1, heads, width]).transpose([0, 2, 1, 3])


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    table = nn.Embedding(LENGTH, WIDTH)
    axes, joined = "[row, token, head, width]", "[row, token, head and width]"
    return {
        "attention": ("attention", "mask causal scale grouped", axes, _attend),
        "multihead": ("attention", "mask", joined, _multihead),
        "embedding": ("positions", "", "[token, width]", table),
    }
