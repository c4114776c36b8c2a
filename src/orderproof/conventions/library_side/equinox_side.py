"""Attention and the rotation of Equinox; its modules take one row."""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

PACKAGE = "equinox"
REQUIREMENTS = ("equinox==0.13.8", "jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6")
ARRAYS = "jax"
LENGTH, WIDTH = 16, 8  # of a table


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    rows, heads, _, width = query.shape
    size, mask = heads * width, options.get("mask")
    module = eqx.nn.MultiheadAttention(heads, size, key=jax.random.key(0), dtype=query.dtype)
    projections = [f"{name}_proj" for name in ("query", "key", "value", "output")]
    module = eqx.tree_at(
        lambda m: [getattr(m, name).weight for name in projections], module, [jnp.eye(size, dtype=query.dtype)] * 4
    )
    given = [x.swapaxes(1, 2).reshape(rows, x.shape[2], size) for x in (query, key, value)]
    masks: Any = mask if mask is not None and mask.ndim == 4 and mask.shape[0] == rows else [mask] * rows
    found = [module(*(x[k] for x in given), mask=each) for k, each in enumerate(masks)]
    return jnp.stack(found).reshape(rows, -1, heads, width).swapaxes(1, 2)


def _rotate(x: Any, positions: Any) -> Any:
    """The module numbers tokens from 0, so the tokens are put where their positions are."""
    last = int(positions[-1])
    if int(positions[0]) < 0:
        raise ValueError("it numbers tokens from 0")
    given, long = np.asarray(x), np.zeros((last + 1, x.shape[-1]), x.dtype)
    found = np.zeros_like(given)
    for row, head in np.ndindex(given.shape[:2]):
        long[positions] = given[row, head]
        found[row, head] = np.asarray(_rotation(x.shape[-1])(long))[positions]
    return found


@cache
def _rotation(width: int) -> Any:
    return jax.jit(eqx.nn.RotaryPositionalEmbedding(width))


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    table = eqx.nn.Embedding(LENGTH, WIDTH, key=jax.random.key(0))
    return {
        "multihead": ("attention", "mask", "[token, head and width]", _attend),
        "rotary": ("rotation", "", "[token, width]", _rotate),
        "embedding": ("positions", "", "[token, width]", jax.vmap(table)),
    }
