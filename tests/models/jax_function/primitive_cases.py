"""Small functions of JAX, each with example inputs: primitives with their parameters. This file runs where jax is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

draw = np.random.default_rng(0)
X = draw.normal(size=(3, 4, 6)).astype("float32")
Y = draw.normal(size=(3, 4, 6)).astype("float32")
M = draw.normal(size=(6, 5)).astype("float32")
I = draw.integers(-9, 9, size=(3, 4)).astype("int32")  # noqa: E741 - an input of integers
J = draw.integers(-3, 4, size=(3, 4)).astype("int32")
TIES = np.array([[2.0, 5.0, 5.0, 1.0], [0.0, 0.0, 0.0, 0.0]], "float32")
ODD = np.array([-np.inf, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3e9, -3e9, np.inf, np.nan], "float32")
IMAGE = draw.normal(size=(2, 9, 8, 4)).astype("float32")
KERNEL = draw.normal(size=(3, 3, 4, 6)).astype("float32")


@jax.custom_vjp
def doubled(x: Any) -> Any:
    return jnp.sin(x) * 2


doubled.defvjp(lambda x: (doubled(x), x), lambda x, given: (given * jnp.cos(x),))


@jax.custom_jvp
def tripled(x: Any) -> Any:
    return jnp.sin(x) * 3


tripled.defjvp(lambda primals, tangents: (tripled(*primals), tangents[0]))

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{
        name: (getattr(jnp, name), (X,))
        for name in ("sin", "cos", "tan", "tanh", "exp", "exp2", "expm1", "sinh", "cosh", "arctan", "floor", "ceil",
                     "sign", "abs", "square", "negative", "cbrt", "isfinite", "arcsinh")
    },
    **{name: (lambda x, name=name: getattr(jnp, name)(jnp.abs(x) / 4 + 0.05), (X,)) for name in (
        "log", "log1p", "sqrt", "arcsin", "arccos", "arctanh")},
    **{name: (lambda x, name=name: getattr(lax, name)(jnp.abs(x) / 4 + 0.05), (X,)) for name in (
        "rsqrt", "erf", "erfc", "erf_inv", "lgamma", "digamma", "logistic")},
    **{name: (getattr(jnp, name), (X, Y)) for name in ("add", "subtract", "multiply", "divide", "maximum",
                                                       "minimum", "arctan2", "fmod", "remainder", "less",
                                                       "equal", "greater_equal")},
    **{f"integer_{name}": (getattr(lax, name), (I, J)) for name in ("div", "rem", "add", "mul", "max", "bitwise_and",
                                                                    "bitwise_or", "bitwise_xor", "eq", "lt")},
    "integer_wraps": (lambda x: x * 1_000_000_007 + 2_000_000_000, (I,)),
    "floor_divide": (lambda x, y: (x // 3, x % 3), (I, J)),
    "shifts": (lambda x: (x << 2, x >> 1), (I,)),
    "pow": (lambda x, y: jnp.abs(x) ** y, (X, Y)),
    "integer_pow": (lambda x: (x**3, x**-2), (X,)),
    "round": (lambda x: (jnp.round(x), lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)), (ODD[1:7],)),
    "cast_saturates": (lambda x: (x.astype("int32"), x.astype("bool")), (ODD,)),
    "cast_widens": (lambda x: (x.astype("float32") / 3, x.astype("int8"), x.astype("bfloat16")), (I,)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), (X,)),
    "select_n": (lambda x, y: lax.select_n(jnp.abs(jnp.round(y).astype("int32")) % 3, x, y, x + y), (X, Y)),
    "where": (lambda x, y: jnp.where(x > y, x, 0.0), (X, Y)),
    "clamp": (lambda x: (lax.clamp(-0.5, x, 0.5), jnp.clip(x, x * 0, x * 0 + 0.2)), (X,)),
    "nan_maximum": (lambda x: (jnp.maximum(x, 0.0), jnp.minimum(0.0, x)), (ODD,)),
    "reductions": (lambda x: (x.sum(), x.sum((0, 2)), x.max(1), x.min(-1), x.mean(0), jnp.prod(x, 1)), (X,)),
    "logical_reductions": (lambda x: ((x > 0).any((0, 1)), (x > -1).all(2)), (X,)),
    "integer_sum": (lambda x: (x.sum(), x.max(0)), (I,)),
    "arg_ties": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)), (TIES,)),
    "arg_nan": (lambda x: (jnp.argmax(x), jnp.argmin(x)), (ODD,)),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 2), lax.cummin(x, 1)), (X,)),
    "cumulative_reverse": (lambda x: (lax.cumsum(x, 1, reverse=True), lax.cumlogsumexp(x, 1, reverse=True)), (X,)),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x, axis=1), (X,)),
    "sort": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 2), lax.sort((x, x * 2), num_keys=1)[1]), (X,)),
    "sort_two_keys": (lambda x, y: lax.sort((x, y, x * y), num_keys=2), (J, I)),
    "top_k": (lambda x: lax.top_k(x, 2), (TIES,)),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None, :, :], (3, 2, 4, 6)) + jnp.ones((1, 2, 1, 1)), (X,)),
    "reshape": (lambda x: (x.reshape(12, 6), x.reshape(3, -1), x[:, :, None].squeeze(2), x.ravel()), (X,)),
    "transpose": (lambda x: (x.transpose(2, 0, 1), jnp.swapaxes(x, 0, 1)), (X,)),
    "rev": (lambda x: x[:, ::-1, ::-1], (X,)),
    "strides": (lambda x: (x[:, 1::2, ::3], x[::-2], x[0, 1:3]), (X,)),
    "concatenate": (lambda x, y: (jnp.concatenate([x, y], 1), jnp.stack([x, y], 2)), (X, Y)),
    "unstack": (lambda x: jnp.unstack(x, axis=1), (X,)),
    "tile": (lambda x: (jnp.tile(x, (2, 1, 3)), jnp.repeat(x, 2, 1), jnp.roll(x, 1, 1), jnp.diff(x, axis=1)), (X,)),
    "linspace": (lambda x: x[0, 0, 0] * jnp.linspace(0, 1, 5), (X,)),
    "split": (lambda x: jnp.split(x, (1, 3), 1), (X,)),
    "pad": (lambda x: lax.pad(x, 1.5, ((0, 1, 0), (-1, 2, 0), (1, 0, 2))), (X,)),
    "iota": (lambda x: x + lax.broadcasted_iota("float32", (3, 4, 6), 1), (X,)),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (0, i[0, 0], i[0, 1] + 7), (3, 2, 4)), (X, I)),
    "dynamic_update": (lambda x, i: lax.dynamic_update_slice(x, x[:, :2] * 2, (0, i[0, 0], 0)), (X, I)),
    "static_update": (lambda x: lax.dynamic_update_slice(x, x[:, :2] * 2, (0, 9, 0)), (X,)),
    "take_clip": (lambda x, i: jnp.take(x, i, axis=1, mode="clip"), (X, I)),
    "take_wrap": (lambda x, i: jnp.take(x, i, axis=0, mode="wrap"), (X, I)),
    "take_fill": (lambda x, i: jnp.take(x.astype("int32"), i, axis=2, mode="fill", fill_value=-7), (X, I)),
    "take_inside": (lambda x, i: jnp.take(x, jnp.abs(i) % 3, axis=0), (X, I)),
    "negative_index": (lambda x: (x[:, -1], x[jnp.array([-1, 0])]), (X,)),
    "many_indices": (lambda x, i: x[jnp.abs(i) % 3, jnp.abs(i) % 4], (X, I)),
    "take_along_axis": (lambda x, i: jnp.take_along_axis(x[..., 0], jnp.abs(i) % 4, 1), (X, I)),
    "take_vectors_along_axis": (lambda x, i: (
        jnp.take_along_axis(x, jnp.abs(i[:, :2, None]) % 4, 1), jnp.take_along_axis(x, i[:, :, None] % 6, 2),
        jnp.take_along_axis(x, jnp.abs(i[:2, :, None]) % 3, 0)), (X, I)),
    "scatter_set": (lambda x, i: x.at[:, 2].set(0.0).at[jnp.array([0, 2])].set(1.0), (X, I)),
    "scatter_add": (lambda x, i: x.at[jnp.abs(i) % 5].add(1.0), (X, I)),
    "scatter_drops": (lambda x, i: x.at[jnp.array([7, 1])].add(2.0), (X, I)),
    "scatter_clips": (lambda x, i: x.at[jnp.array([7, 1])].add(2.0, mode="clip"), (X, I)),
    "scatter_extremes": (lambda x, i: (x.at[1].max(0.2), x.at[:, 1].min(-0.2), x.at[0].multiply(3.0),
                                       x.at[1].subtract(0.5)), (X, I)),
    "matmul": (lambda x, m: (x @ m, x[0] @ m, x[0, 0] @ m), (X, M)),
    "vector_products": (lambda x: (jnp.dot(x[0, 0], x[0, 1]), jnp.outer(x[0, 0], x[0, 1])), (X,)),
    "einsum": (lambda x, y: (jnp.einsum("abc,abd->acd", x, y), jnp.einsum("abc,dbc->ad", x, y),
                             jnp.einsum("abc,adc->abd", x, y), jnp.einsum("abc,abc->", x, y),
                             jnp.einsum("abc,def->abcdef", x, y[:1, :1])), (X, Y)),
    "products_in_precisions": (lambda x, m: (jnp.dot(x, m, precision="highest"), lax.dot_general(
        x, m, (((2,), (0,)), ((), ())), preferred_element_type="float32")), (X, M)),
    "integer_product": (lambda x, y: x @ y.T, (I, J)),
    "product_in_bfloat16": (lambda x, m: (x.astype("bfloat16") @ m.astype("bfloat16")).astype("float32"), (X, M)),
    "convolution": (lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=(
        "NHWC", "HWIO", "NHWC")), (IMAGE, KERNEL)),
    "convolution_dilated": (lambda x, k: lax.conv_general_dilated(
        x, k, (1, 1), ((2, -1), (0, 3)), (2, 1), (1, 2), ("NHWC", "HWIO", "NCHW")), (IMAGE, KERNEL)),
    "convolution_grouped": (lambda x, k: lax.conv_general_dilated(
        x, k[:, :, :1, :4], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4),
        (IMAGE, KERNEL)),
    "pooling": (lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
                           lax.reduce_window(x, 0.0, lax.add, (1, 3, 2, 1), (1, 1, 2, 1), "VALID")), (IMAGE,)),
    "softmax": (lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x, 1), jax.nn.logsumexp(x, 2)), (X,)),
    "softmax_of_hidden_row": (lambda x: jax.nn.softmax(jnp.where(x > 9, x, -jnp.inf)), (X,)),
    "activations": (lambda x: (jax.nn.gelu(x), jax.nn.gelu(x, approximate=False), jax.nn.silu(x), jax.nn.relu(x),
                               jax.nn.elu(x), jax.nn.softplus(x), jax.nn.leaky_relu(x)), (X,)),
    "fourier": (lambda x: (jnp.real(jnp.fft.fft(x, axis=1)), jnp.imag(jnp.fft.ifft(x)), jnp.abs(jnp.fft.rfft(x)),
                           jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.fft2(x)), (X,)),
    "complex": (lambda x, y: (lax.complex(x, y) * jnp.conj(x + 1j), jnp.conj(lax.complex(x, y)).imag, jnp.exp(1j * x),
                              (x + 1j * y) @ (y - 1j).swapaxes(1, 2)), (X, Y)),
    "counts_in_float": (lambda x: jnp.where(jnp.arange(4, dtype="float32")[:, None] * 2 - 1
                                            >= jnp.arange(6, dtype="float32") + 0.0, x, 0.0), (X,)),
    "one_hot": (lambda i: jax.nn.one_hot(jnp.abs(i), 5), (I,)),
    "scan": (lambda x: lax.scan(lambda c, e: (c * 0.5 + e, (c, e * 2)), x[0], x), (X,)),
    "scan_reverse": (lambda x: lax.scan(lambda c, e: (c * 0.5 + e, c), x[0], x, reverse=True), (X,)),
    "map": (lambda x: lax.map(lambda e: jnp.sin(e).sum(0), x), (X,)),
    "fori_loop": (lambda x: lax.fori_loop(0, 5, lambda k, c: c * 0.5 + k, x), (X,)),
    "while_loop": (lambda x: lax.while_loop(lambda c: c.sum() > 1, lambda c: c - 1, x), (X,)),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, x), (X,)),
    "switch": (lambda x, i: lax.switch(i[0, 0], [jnp.sin, jnp.cos, jnp.tanh], x), (X, I)),
    "jit": (jax.jit(lambda y: jnp.sin(y) + 1), (X,)),
    "remat": (jax.checkpoint(lambda y: jnp.tanh(y) * 2), (X,)),
    "custom_vjp": (doubled, (X,)),
    "custom_jvp": (jax.vmap(tripled), (X,)),
    "vmap": (jax.vmap(lambda y: jnp.cumsum(y, 0) @ y.T), (X,)),
    "grad": (jax.grad(lambda y: (jnp.tanh(y) ** 2).sum()), (X,)),
    "random": (lambda x: x + jax.random.normal(jax.random.key(3), x.shape), (X,)),
    "random_integers": (lambda x: x + jax.random.randint(jax.random.key(1), x.shape, 1, 40), (X,)),
    "attention": (lambda x: jax.nn.dot_product_attention(x[:, :, None], x[:, :, None], x[:, :, None], is_causal=True),
                  (X,)),
}  # fmt: skip


def all_names() -> Any:
    """The names, for the process that asks."""
    return CASES


def __getattr__(name: str) -> Any:
    function, inputs = CASES[name.removeprefix("case_")]
    return function, inputs
