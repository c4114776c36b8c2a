"""Attention of Keras on the backend that KERAS_BACKEND names, and its table."""

from __future__ import annotations

from functools import partial
from typing import Any

import keras
import numpy as np
from keras import layers, ops

PACKAGE = "keras"
REQUIREMENTS = ("keras==3.15.1", "numpy==2.4.6")
VARIANTS = {
    "keras_jax": ({"KERAS_BACKEND": "jax"}, ("jax==0.10.2",)),
    "keras_torch": ({"KERAS_BACKEND": "torch"}, ("torch==2.13.0",)),
    "keras_numpy": ({"KERAS_BACKEND": "numpy"}, ("jax==0.10.2",)),
    "keras_openvino": ({"KERAS_BACKEND": "openvino"}, ("openvino==2026.4.1",)),
    "keras_tensorflow": ({"KERAS_BACKEND": "tensorflow"}, ("tensorflow==2.21.0",)),
}
LENGTH, WIDTH = 16, 8  # of a table


def array(given: Any) -> Any:
    """A tensor of the backend."""
    return ops.convert_to_tensor(given.values, dtype=given.dtype)


def numbers(found: Any) -> Any:
    """Numbers in float32, and the dtype of a tensor."""
    dtype = keras.backend.standardize_dtype(found.dtype)
    return ops.convert_to_numpy(ops.cast(found, "float32")), dtype


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    named = {"causal": "is_causal", "soft_cap": "attn_logits_soft_cap"}
    given = {named.get(name, name): x for name, x in options.items() if name != "grouped"}
    moved = [ops.transpose(x, (0, 2, 1, 3)) for x in (query, key, value)]
    return ops.transpose(ops.dot_product_attention(*moved, **given), (0, 2, 1, 3))


def _joined(x: Any) -> Any:
    return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (x.shape[0], x.shape[2], -1))


def _layer(query: Any, key: Any, value: Any, *, as_padding: bool = False, **options: Any) -> Any:
    rows, heads, _, width = query.shape
    dtype, given = keras.backend.standardize_dtype(query.dtype), [_joined(x) for x in (query, value, key)]
    module = layers.MultiHeadAttention(heads, width, use_bias=False, dtype=dtype)
    module.build(*(x.shape for x in given))
    for weight in module.weights:  # projections that change nothing
        weight.assign(np.eye(heads * width).reshape(weight.shape))
    mask = options.get("mask")
    if as_padding and mask is not None and len(mask.shape) != 2:
        raise TypeError("a padding mask is [row, key]")
    named = {"key_mask": mask} if as_padding else {"attention_mask": mask}
    if "query_lengths" in options:
        named["query_mask"] = ops.arange(query.shape[2])[None] < ops.cast(options["query_lengths"], "int32")[:, None]
    found = module(*given, use_causal_mask=options.get("causal", False), **named)
    return ops.transpose(ops.reshape(found, (rows, -1, heads, width)), (0, 2, 1, 3))


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    axes, joined = "[row, token, head, width]", "[row, token, head and width]"
    table = layers.Embedding(LENGTH, WIDTH)
    table.build()
    flags = "mask causal scale soft_cap grouped"
    return {
        "dot_product_attention": ("attention", flags, axes, _attend),
        "multihead": ("attention", "mask causal query_lengths", joined, _layer),
        "multihead_padding": ("attention", "mask causal", joined, partial(_layer, as_padding=True)),
        "embedding": ("positions", "", "[token, width]", table),
    }
