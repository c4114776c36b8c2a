"""Tiny models of JAX for `jax_zoo.py`: of Flax, Equinox, Haiku and keras-hub, and functions as papers write them.

This file runs in the process of JAX. A function named by its library and its model returns the model and its inputs.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

WIDTH, HEADS, TOKENS, ROWS, VOCABULARY = 16, 2, 7, 2, 40
MODELS: dict[str, Callable[[], Any]] = {}


def model(function: Callable[[], Any]) -> Callable[[], Any]:
    MODELS[function.__name__] = function
    return function


def x(rows: int | None = ROWS, seed: int = 1) -> Any:
    return jax.random.normal(jax.random.key(seed), (TOKENS, WIDTH) if rows is None else (rows, TOKENS, WIDTH))


def ids() -> Any:
    return jax.random.randint(jax.random.key(1), (ROWS, TOKENS), 0, VOCABULARY)


def triangle(n: Any) -> Any:
    return jnp.tril(jnp.ones((n, n), dtype=bool))


# ---------------------------------------------------------------- flax.nnx


class NnxDecoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs, layers: int = 2) -> None:
        self.embed = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.places = nnx.Embed(32, WIDTH, rngs=rngs)
        self.norms = nnx.List([nnx.RMSNorm(WIDTH, rngs=rngs) for _ in range(layers)])
        self.mixers = nnx.List([nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=rngs) for _ in range(layers)])
        self.head = nnx.Linear(WIDTH, VOCABULARY, rngs=rngs)

    def __call__(self, tokens: Any) -> Any:
        h = self.embed(tokens) + self.places(jnp.arange(tokens.shape[1]))
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            h = h + mixer(norm(h), mask=triangle(tokens.shape[1])[None, None])
        return self.head(h)


@model
def nnx_decoder() -> Any:
    return NnxDecoder(nnx.Rngs(0)), ids()


@model
def nnx_attention_bidirectional() -> Any:
    return nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, rngs=nnx.Rngs(0)), x()


def _nnx_rnn(cell: Any, **options: Any) -> Any:
    return nnx.RNN(cell(WIDTH, WIDTH, rngs=nnx.Rngs(0)), rngs=nnx.Rngs(0), **options), x()


@model
def nnx_lstm() -> Any:
    return _nnx_rnn(nnx.LSTMCell)


@model
def nnx_gru() -> Any:
    return _nnx_rnn(nnx.GRUCell)


@model
def nnx_simple_rnn() -> Any:
    return _nnx_rnn(nnx.SimpleCell)


@model
def nnx_lstm_backward() -> Any:
    return _nnx_rnn(nnx.OptimizedLSTMCell, reverse=True, keep_order=True)


@model
def nnx_convolution_causal() -> Any:
    return nnx.Conv(WIDTH, WIDTH, (3,), padding="CAUSAL", rngs=nnx.Rngs(0)), x()


@model
def nnx_convolution_same() -> Any:
    return nnx.Conv(WIDTH, WIDTH, (3,), padding="SAME", rngs=nnx.Rngs(0)), x()


@model
def nnx_layer_norm() -> Any:
    return nnx.LayerNorm(WIDTH, rngs=nnx.Rngs(0)), x()


@model
def nnx_rms_norm() -> Any:
    return nnx.RMSNorm(WIDTH, rngs=nnx.Rngs(0)), x()


@model
def nnx_group_norm() -> Any:
    return nnx.GroupNorm(WIDTH, num_groups=4, rngs=nnx.Rngs(0)), x()


@model
def nnx_batch_norm_inference() -> Any:
    return nnx.BatchNorm(WIDTH, rngs=nnx.Rngs(0)), x()


@model
def nnx_mlp() -> Any:
    rngs = nnx.Rngs(0)
    return nnx.Sequential(nnx.Linear(WIDTH, 32, rngs=rngs), nnx.gelu, nnx.Linear(32, WIDTH, rngs=rngs)), x()


@model
def nnx_pooling() -> Any:
    return lambda h: h + nnx.avg_pool(h, (3,), padding="SAME"), x()


# ---------------------------------------------------------------- flax.linen


class LinenDecoder(nn.Module):
    causal: bool = True
    remat: bool = False

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        h = nn.Embed(VOCABULARY, WIDTH)(tokens)
        h = h + self.param("places", nn.initializers.normal(0.1), (1, 32, WIDTH))[:, : tokens.shape[1]]
        mask = nn.make_causal_mask(tokens) if self.causal else None
        attention = nn.remat(nn.SelfAttention) if self.remat else nn.SelfAttention
        for _ in range(2):
            h = h + attention(HEADS, deterministic=True)(nn.LayerNorm()(h), mask)
            h = h + nn.Dense(WIDTH)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(h))))
        return nn.Dense(VOCABULARY)(h)


@model
def linen_decoder() -> Any:
    return LinenDecoder(), ids()


@model
def linen_decoder_remat() -> Any:
    return LinenDecoder(remat=True), ids()


@model
def linen_encoder() -> Any:
    return LinenDecoder(causal=False), ids()


class LinenLayer(nn.Module):
    @nn.compact
    def __call__(self, h: Any, mask: Any) -> Any:
        return h + nn.SelfAttention(HEADS, deterministic=True)(nn.LayerNorm()(h), mask), None


class LinenScanned(nn.Module):
    @nn.compact
    def __call__(self, h: Any) -> Any:
        layers = nn.scan(LinenLayer, variable_axes={"params": 0}, split_rngs={"params": True}, length=3,
                         in_axes=nn.broadcast)  # fmt: skip
        return layers()(h, nn.make_causal_mask(jnp.ones(h.shape[:2])))[0]


@model
def linen_scan_over_layers() -> Any:
    return LinenScanned(), x()


@model
def linen_lstm() -> Any:
    return nn.RNN(nn.LSTMCell(WIDTH)), x()


@model
def linen_optimized_lstm() -> Any:
    return nn.RNN(nn.OptimizedLSTMCell(WIDTH)), x()


@model
def linen_gru() -> Any:
    return nn.RNN(nn.GRUCell(WIDTH)), x()


@model
def linen_minimal_gated_unit() -> Any:
    return nn.RNN(nn.MGUCell(WIDTH)), x()


@model
def linen_bidirectional() -> Any:
    return nn.Bidirectional(nn.RNN(nn.GRUCell(WIDTH)), nn.RNN(nn.GRUCell(WIDTH))), x()


@model
def linen_convolution_causal() -> Any:
    return nn.Conv(WIDTH, (4,), padding="CAUSAL"), x()


@model
def linen_convolution_dilated() -> Any:
    return nn.Conv(WIDTH, (3,), padding="CAUSAL", kernel_dilation=(2,)), x()


@model
def linen_group_norm() -> Any:
    return nn.GroupNorm(4), x()


@model
def linen_instance_norm() -> Any:
    return nn.InstanceNorm(), x()


# ---------------------------------------------------------------- equinox


class EquinoxAttention(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    rope: eqx.nn.RotaryPositionalEmbedding
    causal: bool
    rotates: bool

    def __init__(self, *, causal: bool = True, rotates: bool = False) -> None:
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=jax.random.key(0))
        self.rope = eqx.nn.RotaryPositionalEmbedding(WIDTH // HEADS)
        self.causal, self.rotates = causal, rotates

    def one(self, h: Any) -> Any:
        def rotate(q: Any, k: Any, v: Any) -> Any:
            turn = jax.vmap(self.rope, in_axes=1, out_axes=1)
            return turn(q), turn(k), v

        mask = triangle(h.shape[0]) if self.causal else None
        return h + self.attention(h, h, h, mask=mask, process_heads=rotate if self.rotates else None)

    def __call__(self, h: Any) -> Any:
        return jax.vmap(self.one)(h)


@model
def equinox_attention() -> Any:
    return EquinoxAttention(), x()


@model
def equinox_attention_bidirectional() -> Any:
    return EquinoxAttention(causal=False), x()


@model
def equinox_rotary_attention() -> Any:
    return EquinoxAttention(rotates=True), x()


class EquinoxRecurrent(eqx.Module):
    cell: Any
    has_memory: bool
    reverse: bool

    def __call__(self, h: Any) -> Any:
        start = jnp.zeros(WIDTH)
        first = (start, start) if self.has_memory else start

        def step(state: Any, entry: Any) -> Any:
            state = self.cell(entry, state)
            return state, state[0] if self.has_memory else state

        return jax.vmap(lambda row: lax.scan(step, first, row, reverse=self.reverse)[1])(h)


@model
def equinox_lstm() -> Any:
    return EquinoxRecurrent(eqx.nn.LSTMCell(WIDTH, WIDTH, key=jax.random.key(0)), has_memory=True, reverse=False), x()


@model
def equinox_gru() -> Any:
    return EquinoxRecurrent(eqx.nn.GRUCell(WIDTH, WIDTH, key=jax.random.key(0)), has_memory=False, reverse=False), x()


@model
def equinox_gru_backward() -> Any:
    return EquinoxRecurrent(eqx.nn.GRUCell(WIDTH, WIDTH, key=jax.random.key(0)), has_memory=False, reverse=True), x()


class EquinoxConvolution(eqx.Module):
    layer: eqx.nn.Conv1d

    def __call__(self, h: Any) -> Any:
        return jax.vmap(lambda row: self.layer(row.T).T)(h)


@model
def equinox_convolution_causal() -> Any:
    return EquinoxConvolution(eqx.nn.Conv1d(WIDTH, WIDTH, 3, padding=((2, 0),), key=jax.random.key(0))), x()


@model
def equinox_convolution_same() -> Any:
    return EquinoxConvolution(eqx.nn.Conv1d(WIDTH, WIDTH, 3, padding=1, key=jax.random.key(0))), x()


# ---------------------------------------------------------------- haiku


@model
def haiku_attention() -> Any:
    def function(h: Any) -> Any:
        layer = hk.MultiHeadAttention(HEADS, WIDTH // HEADS, model_size=WIDTH, w_init=hk.initializers.VarianceScaling())
        return h + layer(h, h, h, mask=triangle(h.shape[1])[None, None])

    return hk.transform(function), x()


@model
def haiku_attention_bidirectional() -> Any:
    def function(h: Any) -> Any:
        layer = hk.MultiHeadAttention(HEADS, WIDTH // HEADS, model_size=WIDTH, w_init=hk.initializers.VarianceScaling())
        return h + layer(h, h, h)

    return hk.transform(function), x()


def _haiku_core(core: Any) -> Any:
    def function(h: Any) -> Any:
        made = core(WIDTH)
        return hk.dynamic_unroll(made, h, made.initial_state(h.shape[0]), time_major=False)[0]

    return hk.transform(function), x()


@model
def haiku_lstm() -> Any:
    return _haiku_core(hk.LSTM)


@model
def haiku_gru() -> Any:
    return _haiku_core(hk.GRU)


@model
def haiku_vanilla_rnn() -> Any:
    return _haiku_core(hk.VanillaRNN)


@model
def haiku_convolution_causal() -> Any:
    def function(h: Any) -> Any:
        layer = hk.Conv1D(WIDTH, 3, padding=hk.pad.causal)
        return layer(h)

    return hk.transform(function), x()


@model
def haiku_layer_norm() -> Any:
    def function(h: Any) -> Any:
        layer = hk.LayerNorm(-1, create_scale=True, create_offset=True)
        return layer(h)

    return hk.transform(function), x()


# ---------------------------------------------------------------- functions


def _weights(count: int) -> Any:
    return jax.random.normal(jax.random.key(3), (count, WIDTH, WIDTH)) / 4


@model
def function_causal_attention_of_jax() -> Any:
    def function(w: Any, h: Any) -> Any:
        q, k, v = (jnp.einsum("bnd,de->bne", h, each).reshape(*h.shape[:2], HEADS, -1) for each in w)
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(h.shape)

    return function, _weights(3), x()


@model
def function_local_attention_of_jax() -> Any:
    def function(w: Any, h: Any) -> Any:
        q, k, v = (jnp.einsum("bnd,de->bne", h, each).reshape(*h.shape[:2], HEADS, -1) for each in w)
        return jax.nn.dot_product_attention(q, k, v, local_window_size=(2, 0)).reshape(h.shape)

    return function, _weights(3), x()


@model
def function_alibi() -> Any:
    def function(w: Any, h: Any) -> Any:
        q, k, v = h @ w[0], h @ w[1], h @ w[2]
        place = jnp.arange(h.shape[1])
        scores = jnp.einsum("bqd,bkd->bqk", q, k) / 4 - 0.5 * (place[:, None] - place)
        return jax.nn.softmax(jnp.where(place[:, None] >= place, scores, -jnp.inf)) @ v

    return function, _weights(3), x()


@model
def function_linear_attention() -> Any:
    def function(w: Any, h: Any) -> Any:
        q, k, v = jax.nn.elu(h @ w[0]) + 1, jax.nn.elu(h @ w[1]) + 1, h @ w[2]
        memory = jnp.cumsum(jnp.einsum("bnd,bne->bnde", k, v), 1)
        return jnp.einsum("bnd,bnde->bne", q, memory) / jnp.einsum("bnd,bnd->bn", q, jnp.cumsum(k, 1))[..., None]

    return function, _weights(3), x()


@model
def function_linear_attention_of_all() -> Any:
    def function(w: Any, h: Any) -> Any:
        q, k, v = jax.nn.elu(h @ w[0]) + 1, jax.nn.elu(h @ w[1]) + 1, h @ w[2]
        return jnp.einsum("bnd,bde->bne", q, jnp.einsum("bnd,bne->bde", k, v))

    return function, _weights(3), x()


@model
def function_selective_scan() -> Any:
    def function(w: Any, h: Any) -> Any:
        def step(state: Any, entry: Any) -> Any:
            gate = jax.nn.sigmoid(entry @ w[0])
            state = gate * state + (1 - gate) * jnp.tanh(entry @ w[1])
            return state, state * jax.nn.silu(entry @ w[2])

        return jnp.swapaxes(lax.scan(step, jnp.zeros((h.shape[0], WIDTH)), jnp.swapaxes(h, 0, 1))[1], 0, 1)

    return function, _weights(3), x()


@model
def function_associative_scan() -> Any:
    def function(w: Any, h: Any) -> Any:
        decay, entry = jax.nn.sigmoid(h @ w[0]), h @ w[1]
        join = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])  # noqa: E731
        return lax.associative_scan(join, (decay, entry), axis=1)[1]

    return function, _weights(2), x()


@model
def function_token_shift() -> Any:
    def function(w: Any, h: Any) -> Any:
        before = jnp.pad(h, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        return h @ w[0] + before @ w[1]

    return function, _weights(2), x()


@model
def function_roll() -> Any:
    return lambda w, h: h @ w[0] + jnp.roll(h, 1, 1) @ w[1], _weights(2), x()


@model
def function_fourier_mixing() -> Any:
    return lambda h: jnp.real(jnp.fft.fft(h, axis=1)), x()


@model
def function_mean_pooling() -> Any:
    return lambda w, h: h @ w[0] + h.mean(1, keepdims=True), _weights(1), x()


@model
def function_fori_loop() -> Any:
    def function(w: Any, h: Any) -> Any:
        def body(k: Any, carry: Any) -> Any:
            state, found = carry
            state = jnp.tanh(state @ w[0] + lax.dynamic_index_in_dim(h, k, 1, keepdims=False))
            return state, lax.dynamic_update_index_in_dim(found, state, k, 1)

        return lax.fori_loop(0, h.shape[1], body, (jnp.zeros((h.shape[0], WIDTH)), jnp.zeros_like(h)))[1]

    return function, _weights(1), x()


@model
def function_mixture_of_experts() -> Any:
    def function(w: Any, h: Any) -> Any:
        gates, chosen = lax.top_k(jax.nn.softmax(h @ w[0][:, :4]), 2)
        outputs = jnp.einsum("bnd,edf->bnef", h, w[1:5])
        picked = jnp.take_along_axis(outputs, chosen[..., None], axis=2)
        return (gates[..., None] * picked).sum(2)

    return function, _weights(5), x()


# ---------------------------------------------------------------- keras-hub


def _keras_hub(name: str, **options: Any) -> Any:
    import keras_hub

    make = getattr(keras_hub.models, f"{name}Backbone")
    vocabulary = "vocab_size" if "vocab_size" in inspect.signature(make.__init__).parameters else "vocabulary_size"
    width = "hidden_size" if "hidden_size" in inspect.signature(make.__init__).parameters else "hidden_dim"
    backbone = make(**{vocabulary: VOCABULARY, "num_layers": 2, width: WIDTH, "intermediate_dim": 32, **options})
    tokens = ids()
    kinds = {"ids": tokens, "mask": jnp.ones_like(tokens), "segment": jnp.zeros_like(tokens)}
    given = {}
    for each in backbone.inputs:
        kind = "mask" if "mask" in each.name else "segment" if "segment" in each.name else "ids"
        given[each.name] = kinds[kind]
    return backbone, given


_GROUPED = {"num_query_heads": 2, "num_key_value_heads": 1}
_EXPERTS = {**_GROUPED, "moe_intermediate_dim": 8, "num_experts": 2, "top_k": 1}
KERAS_HUB: dict[str, dict[str, Any]] = {
    "Albert": {"num_heads": 2, "embedding_dim": 8, "max_sequence_length": 32},
    "Bart": {"num_heads": 2, "max_sequence_length": 32},
    "Bert": {"num_heads": 2, "max_sequence_length": 32},
    "Bloom": {"num_heads": 2, "max_sequence_length": 32},
    "DebertaV3": {"num_heads": 2, "max_sequence_length": 32, "bucket_size": 8},
    "DistilBert": {"num_heads": 2, "max_sequence_length": 32},
    "ESM": {"num_heads": 2, "max_sequence_length": 32},
    "Electra": {"num_heads": 2, "embedding_dim": 8, "max_sequence_length": 32},
    "FNet": {"max_sequence_length": 32},
    "Falcon": {"num_attention_heads": 2},
    "Gemma": {**_GROUPED, "head_dim": 8},
    "Gemma3": {**_GROUPED, "head_dim": 8, "image_size": 4, "use_sliding_window_attention": True,
               "sliding_window_size": 3},
    "GPT2": {"num_heads": 2, "max_sequence_length": 32},
    "GPTNeoX": {"num_heads": 2, "max_sequence_length": 32},
    "GptOss": {**_GROUPED, "num_experts": 2, "top_k": 1, "sliding_window": 3},
    "Llama": _GROUPED,
    "Llama3": _GROUPED,
    "Mistral": {**_GROUPED, "sliding_window": 3},
    "Mixtral": {**_GROUPED, "num_experts": 2, "top_k": 1},
    "OPT": {"num_heads": 2, "max_sequence_length": 32},
    "Phi3": _GROUPED,
    "Qwen": _GROUPED,
    "Qwen3": {**_GROUPED, "head_dim": 8},
    "Qwen3Moe": {**_EXPERTS, "head_dim": 8},
    "Qwen3_5": {**_GROUPED, "head_dim": 8, "layer_types": ["linear_attention", "full_attention"],
                "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8,
                "linear_value_head_dim": 8},
    "QwenMoe": {**_EXPERTS, "shared_expert_intermediate_dim": 8},
    "RWKV7": {"head_size": 8, "gate_lora": 8, "mv_lora": 8, "aaa_lora": 8, "decay_lora": 8},
    "Roberta": {"num_heads": 2, "max_sequence_length": 32},
    "RoformerV2": {"num_heads": 2, "head_size": 8, "max_wavelength": 100},
    "SmolLM3": {"num_attention_heads": 2, "num_key_value_heads": 1, "attention_bias": False, "attention_dropout": 0.0,
                "layer_types": ["full_attention"] * 2, "rope_layer_enabled_list": [True, False], "mlp_bias": False,
                "layer_norm_epsilon": 1e-6, "max_position_embeddings": 32, "rope_theta": 1e4,
                "partial_rotary_factor": 1.0},
    "T5": {"num_heads": 2},
    "XLMRoberta": {"num_heads": 2, "max_sequence_length": 32},
    "XLNet": {"num_heads": 2},
}  # fmt: skip
for _name, _options in KERAS_HUB.items():
    MODELS[f"keras_hub_{_name}"] = lambda _name=_name, _options=_options: _keras_hub(_name, **_options)
globals().update(MODELS)
