"""The Flax block of `jax_block.py`: this file runs in the process of JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

WIDTH, HEADS, TOKENS = 8, 2, 7


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(WIDTH, 16, rngs=rngs), nnx.Linear(16, WIDTH, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), dtype=bool))
        x = x + self.attention(self.norm(x), mask=mask[None, None])
        return x + self.down(nnx.gelu(self.up(x)))


def block() -> Any:
    return Block(nnx.Rngs(0)), jax.random.normal(jax.random.key(1), (2, TOKENS, WIDTH))
