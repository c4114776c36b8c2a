"""`jax.nn.dot_product_attention`, and look-ups of a table by index."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PACKAGE = "jax"
REQUIREMENTS = ("jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6")
ARRAYS = "jax"
LENGTH, WIDTH = 16, 8  # of a table


def _attend(query: Any, key: Any, value: Any, **options: Any) -> Any:
    named = {
        "lengths": "key_value_seq_lengths",
        "query_lengths": "query_seq_lengths",
        "causal": "is_causal",
        "window": "local_window_size",
    }
    given = {named.get(name, name): x for name, x in options.items() if name != "grouped"}
    if "mask" in given and given["mask"].ndim == 4 and jnp.issubdtype(given["mask"].dtype, jnp.floating):
        given["bias"] = given.pop("mask")  # numbers that are added have an argument of their own
    found = jax.nn.dot_product_attention(*(x.swapaxes(1, 2) for x in (query, key, value)), **given)
    return found.swapaxes(1, 2)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    table = jnp.asarray(np.random.default_rng(0).standard_normal((LENGTH, WIDTH)), jnp.float32)
    axes = "[row, token, head, width]"
    return {
        "dot_product_attention": ("attention", "mask causal scale window lengths query_lengths grouped", axes, _attend),
        "indexing": ("positions", "", "[token, width]", lambda positions: table[positions]),
        "take": ("positions", "", "[token, width]", lambda positions: jnp.take(table, positions, axis=0)),
    }
