"""Attention of Flax: the functions of nnx and linen, their modules with identities as projections, and a table."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen, nnx

PACKAGE = "flax"
REQUIREMENTS = ("flax==0.12.8", "jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6")
ARRAYS = "jax"
LENGTH, WIDTH = 16, 8  # of a table


def _function(function: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
    given = {"is_causal": options["causal"]} if "causal" in options else {}
    found = function(*(x.swapaxes(1, 2) for x in (query, key, value)), mask=options.get("mask"), **given)
    return found.swapaxes(1, 2)


def _joined(x: Any) -> Any:
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def _identity(_key: Any, shape: Any, dtype: Any = jnp.float32, *_: Any) -> Any:
    """A kernel that changes nothing, of any axes."""
    return jnp.eye(math.isqrt(math.prod(shape))).reshape(shape).astype(dtype)


def _linen_module(query: Any, key: Any, value: Any, **options: Any) -> Any:
    rows, heads, _, width = query.shape
    module = linen.MultiHeadDotProductAttention(
        heads, qkv_features=heads * width, use_bias=False, kernel_init=_identity, dtype=query.dtype
    )
    given = [_joined(x) for x in (query, key, value)]
    found, _ = module.init_with_output(jax.random.key(0), *given, mask=options.get("mask"))
    return found.reshape(rows, -1, heads, width).swapaxes(1, 2)


def _nnx_module(query: Any, key: Any, value: Any, **options: Any) -> Any:
    rows, heads, _, width = query.shape
    module = nnx.MultiHeadAttention(
        heads, heads * width, use_bias=False, kernel_init=_identity, decode=False, dtype=query.dtype, rngs=nnx.Rngs(0)
    )
    found = module(*(_joined(x) for x in (query, key, value)), mask=options.get("mask"))
    return found.reshape(rows, -1, heads, width).swapaxes(1, 2)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    axes, joined = "[row, token, head, width]", "[row, token, head and width]"
    table = nnx.Embed(LENGTH, WIDTH, rngs=nnx.Rngs(0))
    return {
        "nnx_attention": ("attention", "mask causal grouped", axes, partial(_function, nnx.dot_product_attention)),
        "nnx_multihead": ("attention", "mask", joined, _nnx_module),
        "linen_attention": ("attention", "mask grouped", axes, partial(_function, linen.dot_product_attention)),
        "linen_multihead": ("attention", "mask", joined, _linen_module),
        "nnx_embed": ("positions", "", "[token, width]", table),
    }
