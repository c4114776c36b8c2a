"""Attention of Haiku, with projections that change nothing, and its table."""

from __future__ import annotations

from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

PACKAGE = "haiku"
REQUIREMENTS = ("dm-haiku==0.0.17", "jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6")
ARRAYS = "jax"
LENGTH, WIDTH = 16, 8  # of a table


def _run(call: Any, *given: Any) -> Any:
    pure = hk.without_apply_rng(hk.transform(call))
    return pure.apply(pure.init(jax.random.key(0), *given), *given)


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    rows, heads, _, width = query.shape

    def call(*given: Any) -> Any:
        identity = hk.initializers.Constant(jnp.eye(heads * width))
        module = hk.MultiHeadAttention(heads, width, w_init=identity, with_bias=False)
        return module(*given, mask=options.get("mask"))

    found = _run(call, *(x.swapaxes(1, 2).reshape(rows, x.shape[2], -1) for x in (query, key, value)))
    return found.reshape(rows, -1, heads, width).swapaxes(1, 2)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""

    def look_up(positions: Any) -> Any:
        def call(given: Any) -> Any:
            return hk.Embed(LENGTH, WIDTH)(given)

        return _run(call, positions)

    return {
        "multihead": ("attention", "mask", "[row, token, head and width]", _attend),
        "embed": ("positions", "", "[token, width]", look_up),
    }
