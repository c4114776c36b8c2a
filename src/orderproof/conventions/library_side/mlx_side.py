"""The fast functions of MLX, on its processor backend."""

from __future__ import annotations

from functools import partial
from typing import Any

import mlx.core as mx
import numpy as np

PACKAGE = "mlx"
ENVIRONMENT = "mlx-core"  # an engine has the name of the library
REQUIREMENTS = ("mlx==0.32.4", "mlx-cpu==0.32.4", "numpy==2.4.6")
KINDS = {"bfloat16": mx.bfloat16, "float16": mx.float16, "bool": mx.bool_, "int64": mx.int64, "int32": mx.int32}


def array(given: Any) -> Any:
    """An array of the library."""
    found = mx.array(given.values)
    return found.astype(KINDS.get(given.dtype, mx.float32))


def numbers(found: Any) -> Any:
    """Numbers in float32, and the dtype of an array."""
    return np.array(found.astype(mx.float32)), str(found.dtype).rpartition(".")[2]


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    mask, causal = options.get("mask"), options.get("causal", False)
    if mask is not None and causal:
        raise TypeError("a mask is an array or the word causal")
    given = "causal" if causal else mask
    scale = options.get("scale", query.shape[-1] ** -0.5)  # it has no default
    more = {"sinks": options["sinks"]} if "sinks" in options else {}
    return mx.fast.scaled_dot_product_attention(query, key, value, scale=scale, mask=given, **more)


def _rotate(x: Any, positions: Any, *, traditional: bool) -> Any:
    offset = positions[:, 0] if positions.ndim == 2 else int(positions[0])  # it counts on from there
    return mx.fast.rope(x, x.shape[-1], traditional=traditional, base=10_000.0, scale=1.0, offset=offset)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    axes = "[row, head, token, width]"
    return {
        "fast_attention": ("attention", "mask causal scale grouped sinks", axes, _attend),
        "fast_rope": ("rotation", "rows", axes, partial(_rotate, traditional=False)),
        "fast_rope_traditional": ("rotation", "rows", axes, partial(_rotate, traditional=True)),
    }
