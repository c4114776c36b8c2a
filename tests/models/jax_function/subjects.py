"""Models of JAX whose programs are recorded in `recorded/`: this file runs where jax is."""

from __future__ import annotations

import os
import signal
from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

WIDTH, TOKENS = 8, 7


def example(rows: int = 2) -> Any:
    return jax.random.normal(jax.random.key(1), (rows, TOKENS, WIDTH))


def triangle(tokens: Any, shift: int) -> Any:
    return jnp.tril(jnp.ones((tokens, tokens), dtype=bool), shift)


class NnxBlock(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, shift: int) -> None:
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(num_heads=2, in_features=WIDTH, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(WIDTH, 16, rngs=rngs), nnx.Linear(16, WIDTH, rngs=rngs)
        self.shift = shift

    def __call__(self, x: Any) -> Any:
        mask = triangle(x.shape[1], self.shift)
        x = x + self.attention(self.norm(x), mask=mask[None, None])
        return x + self.down(nnx.gelu(self.up(x)))


def nnx_block() -> Any:
    return NnxBlock(nnx.Rngs(0), 0), example()


def nnx_off_by_one() -> Any:
    return NnxBlock(nnx.Rngs(0), 1), example()


class EquinoxBlock(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm

    def __init__(self) -> None:
        self.attention = eqx.nn.MultiheadAttention(2, WIDTH, key=jax.random.key(0))
        self.norm = eqx.nn.LayerNorm(WIDTH)

    def one(self, x: Any) -> Any:
        y = jax.vmap(self.norm)(x)
        return x + self.attention(y, y, y, mask=triangle(x.shape[0], 0))

    def __call__(self, x: Any) -> Any:
        return jax.vmap(self.one)(x)


def equinox_block() -> Any:
    return EquinoxBlock(), example()


class LinenLayer(nn.Module):
    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + nn.SelfAttention(num_heads=2, deterministic=not train)(nn.LayerNorm()(x), mask)
        return x + nn.Dense(WIDTH)(nn.Dropout(0.1, deterministic=not train)(nn.gelu(nn.Dense(16)(x))))


class LinenModel(nn.Module):
    @nn.compact
    def __call__(self, ids: Any, train: bool) -> Any:
        table = self.param("positions", nn.initializers.normal(0.1), (1, 32, WIDTH))
        x = nn.Embed(20, WIDTH)(ids) + table[:, : ids.shape[1]]
        return nn.Dense(20)(nn.remat(LinenLayer, static_argnums=(2,))()(x, train))


def linen_model() -> Any:
    return LinenModel(), jax.random.randint(jax.random.key(1), (2, TOKENS), 0, 20)


def recurrent(weights: Any, x: Any, *, reverse: bool) -> Any:
    def step(state: Any, entry: Any) -> Any:
        state = jnp.tanh(state @ weights["state"] + entry @ weights["entry"])
        return state, state

    start = jnp.zeros((x.shape[0], WIDTH))
    _, found = lax.scan(step, start, jnp.swapaxes(x, 0, 1), reverse=reverse)
    return jnp.swapaxes(found, 0, 1)


def recurrent_weights() -> Any:
    draw = jax.random.normal(jax.random.key(2), (2, WIDTH, WIDTH)) / 3
    return {"state": draw[0], "entry": draw[1]}


def scan_forward() -> Any:
    return lambda weights, x: recurrent(weights, x, reverse=False), recurrent_weights(), example()


def scan_backward() -> Any:
    return lambda weights, x: recurrent(weights, x, reverse=True), recurrent_weights(), example()


def counted_loop() -> Any:
    """Each turn of a `fori_loop` reads one token, and writes the sum of those up to it."""

    def function(scale: Any, x: Any) -> Any:
        def body(k: Any, carry: Any) -> Any:
            total, found = carry
            total = total + lax.dynamic_index_in_dim(x, k, 1, keepdims=False) * scale
            return total, lax.dynamic_update_index_in_dim(found, total, k, 1)

        return lax.fori_loop(0, TOKENS, body, (jnp.zeros((x.shape[0], WIDTH)), jnp.zeros_like(x)))[1]

    return function, jnp.ones(WIDTH) * 0.5, example()


def printing() -> Any:
    def function(x: Any) -> Any:
        jax.debug.print("{}", x.sum())
        return x

    return function, example()


def calls_back() -> Any:
    def function(x: Any) -> Any:
        return jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + x

    return function, example()


def asks_for_numbers() -> Any:
    return lambda x: x if x.sum() > 0 else -x, example()


def names_an_absent_device() -> Any:
    return lambda x: jax.device_put(x, jax.devices("gpu")[0]), example()


def ends_the_process() -> Any:
    def function(x: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)
        return x

    return function, example()


def raises() -> Any:
    raise ValueError("no such weights")


RECORDED = (
    "nnx_block", "nnx_off_by_one", "equinox_block", "linen_model", "scan_forward", "scan_backward", "counted_loop",
)  # fmt: skip
