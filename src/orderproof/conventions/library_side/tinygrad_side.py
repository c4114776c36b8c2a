"""Attention of tinygrad, and a look-up by index."""

from __future__ import annotations

from typing import Any

import numpy as np
from tinygrad import Tensor, dtypes, nn

PACKAGE = "tinygrad"
REQUIREMENTS = ("tinygrad==0.14.0", "numpy==2.4.6")
VARIANTS = {"tinygrad": ({"DEV": "PYTHON"}, ())}  # the device that needs no compiler
LENGTH, WIDTH = 16, 8  # of a table


def array(given: Any) -> Any:
    """A tensor of the library."""
    return Tensor(np.ascontiguousarray(given.values)).cast(getattr(dtypes, given.dtype))


def numbers(found: Any) -> Any:
    """Numbers in float32, and the dtype of a tensor."""
    names = {dtypes.bfloat16: "bfloat16", dtypes.float16: "float16"}
    return found.cast(dtypes.float32).numpy(), names.get(found.dtype, "float32")


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    given = {"attn_mask": options.get("mask"), "is_causal": options.get("causal", False)}
    return query.scaled_dot_product_attention(key, value, enable_gqa=options.get("grouped", False), **given)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    table = nn.Embedding(LENGTH, WIDTH)
    return {
        "attention": ("attention", "mask causal grouped", "[row, head, token, width]", _attend),
        "embedding": ("positions", "", "[token, width]", table),
        "indexing": ("positions", "", "[token, width]", lambda positions: table.weight[positions]),
    }
