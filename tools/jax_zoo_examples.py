"""The examples of Flax and Haiku and the transformers of Penzai, tiny, for `jax_zoo.py`.

This file runs in the process of JAX. The examples are no packages: clone github.com/google/flax and
github.com/google-deepmind/dm-haiku, and let FLAX_EXAMPLES and HAIKU_EXAMPLES name their folders `examples`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

WIDTH, HEADS, TOKENS, ROWS, VOCABULARY = 16, 2, 7, 2, 40


def model(function: Callable[[], Any]) -> Callable[[], Any]:
    return function


def ids(least: int = 1) -> Any:
    return jax.random.randint(jax.random.key(1), (ROWS, TOKENS), least, VOCABULARY)


def example(variable: str, name: str) -> Any:
    """A module of an example. Its own imports are of files next to it."""
    if variable not in os.environ:
        raise FileNotFoundError(f"{variable} names no folder of examples")
    path = Path(os.environ[variable], f"{name}.py")
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(f"example_{name.replace('/', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[found.__name__] = found
    spec.loader.exec_module(found)
    return found


# ---------------------------------------------------------------- flax/examples


def _small(config: Any, **more: Any) -> Any:
    return config(
        vocab_size=VOCABULARY, output_vocab_size=VOCABULARY, emb_dim=WIDTH, num_heads=HEADS, num_layers=2,
        qkv_dim=WIDTH, mlp_dim=32, max_len=32, deterministic=True, **more,
    )  # fmt: skip


@model
def flax_example_lm1b() -> Any:
    models = example("FLAX_EXAMPLES", "lm1b/models")
    return models.TransformerLM(_small(models.TransformerConfig)), ids()


@model
def flax_example_lm1b_shared_embedding() -> Any:
    models = example("FLAX_EXAMPLES", "lm1b/models")
    small = _small(models.TransformerConfig, share_embeddings=True, logits_via_embedding=True)
    return models.TransformerLM(small), ids()


@model
def flax_example_wmt() -> Any:
    models = example("FLAX_EXAMPLES", "wmt/models")
    return models.Transformer(_small(models.TransformerConfig)), {"inputs": ids(), "targets": ids()}


@model
def flax_example_wmt_decoder() -> Any:
    models = example("FLAX_EXAMPLES", "wmt/models")
    whole = models.Transformer(_small(models.TransformerConfig))
    variables = whole.init(jax.random.key(0), ids(), ids())

    def function(weights: Any, targets: Any) -> Any:
        return whole.apply(weights, ids(), targets)

    return function, variables, ids()


@model
def flax_example_nlp_seq() -> Any:
    models = example("FLAX_EXAMPLES", "nlp_seq/models")
    config = models.TransformerConfig(
        vocab_size=VOCABULARY, output_vocab_size=5, emb_dim=WIDTH, num_heads=HEADS, num_layers=2, qkv_dim=WIDTH,
        mlp_dim=32, max_len=32,
    )  # fmt: skip
    return models.Transformer(config), {"inputs": ids(), "train": False}


@model
def flax_example_sst2() -> Any:
    models = example("FLAX_EXAMPLES", "sst2/models")
    classifier = models.TextClassifier(
        embedding_size=WIDTH, hidden_size=WIDTH, vocab_size=VOCABULARY, output_size=2, dropout_rate=0.1,
        word_dropout_rate=0.1,
    )  # fmt: skip
    return classifier, {"token_ids": ids(), "lengths": jnp.full((ROWS,), TOKENS), "deterministic": True}


@model
def flax_example_sst2_lstm() -> Any:
    models = example("FLAX_EXAMPLES", "sst2/models")
    cell = models.SimpleLSTM(WIDTH)
    state = cell.initialize_carry((ROWS, WIDTH))
    h = jax.random.normal(jax.random.key(1), (ROWS, TOKENS, WIDTH))
    variables = cell.init(jax.random.key(0), state, h)
    return lambda weights, x: cell.apply(weights, cell.initialize_carry(x[:, 0].shape), x)[1], variables, h


@model
def flax_example_seq2seq() -> Any:
    models = example("FLAX_EXAMPLES", "seq2seq/models")
    whole = models.Seq2seq(teacher_force=True, hidden_size=WIDTH, vocab_size=10, eos_id=1)
    tokens = jax.nn.one_hot(ids() % 10, 10)
    keys = {"params": jax.random.key(0), "lstm": jax.random.key(1)}
    variables = whole.init(keys, tokens, tokens)

    def function(weights: Any, decoder_inputs: Any) -> Any:
        return whole.apply(weights, tokens, decoder_inputs, rngs={"lstm": jax.random.key(1)})[0]

    return function, variables, tokens


@model
def flax_example_gemma() -> Any:
    from flax import nnx

    transformer = example("FLAX_EXAMPLES", "gemma/transformer")
    config = importlib.import_module("transformer_cfg")
    kinds = config.AttentionType
    small = config.TransformerConfig(
        num_layers=2, num_embed=VOCABULARY, embed_dim=WIDTH, hidden_dim=32, num_heads=HEADS, head_dim=8,
        num_kv_heads=1, final_logit_softcap=30.0, use_post_attn_norm=True, use_post_ffw_norm=True,
        attention_types=(kinds.LOCAL_SLIDING, kinds.GLOBAL), attn_logits_soft_cap=50.0, sliding_window_size=3,
        use_qk_norm=True,
    )  # fmt: skip
    whole = transformer.Transformer(small, rngs=nnx.Rngs(0))

    class Gemma(nnx.Module):
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __call__(self, tokens: Any) -> Any:
            length = tokens.shape[1]
            places = jnp.broadcast_to(jnp.arange(length), tokens.shape)
            mask = jnp.broadcast_to(jnp.tril(jnp.ones((length, length), dtype=bool)), (tokens.shape[0], length, length))
            return self.inner(tokens, places, None, mask)[0]

    return Gemma(whole), ids()


# ---------------------------------------------------------------- haiku/examples


@model
def haiku_example_transformer() -> Any:
    import haiku as hk

    models = example("HAIKU_EXAMPLES", "transformer/model")

    def function(tokens: Any) -> Any:
        inner = models.Transformer(num_heads=HEADS, num_layers=2, attn_size=8, dropout_rate=0.0)
        return models.LanguageModel(transformer=inner, model_size=WIDTH, vocab_size=VOCABULARY, pad_token=0)(tokens)

    return hk.transform(function), ids()


# ---------------------------------------------------------------- penzai


def _penzai(**options: Any) -> Any:
    from penzai import pz
    from penzai.models.transformer.variants import llamalike_common as common

    sizes = {"num_kv_heads": 1, "query_head_multiplier": 2, "embedding_dim": WIDTH, "projection_dim": 8,
             "mlp_hidden_dim": 32, "num_decoder_blocks": 2, "vocab_size": VOCABULARY, "mlp_variant": "swiglu",
             "tie_embedder_and_logits": False}  # fmt: skip
    whole = common.build_llamalike_transformer(
        common.LlamalikeTransformerConfig(**{**sizes, **options}), init_base_rng=jax.random.key(0)
    )
    return _penzai_function(pz, whole)


def _penzai_function(pz: Any, whole: Any) -> Any:
    plain, weights = pz.unbind_params(whole, freeze=True)

    def function(values: Any, tokens: Any) -> Any:
        found = pz.bind_variables(plain, values)(pz.nx.wrap(tokens).tag("batch", "seq"))
        return found.unwrap("batch", "seq", "vocabulary")

    return function, weights, ids()


@model
def penzai_llama() -> Any:
    return _penzai()


@model
def penzai_llama_scanned_layers() -> Any:
    return _penzai(use_layer_stack=True)


@model
def penzai_gemma() -> Any:
    return _penzai(mlp_variant="geglu_approx", tie_embedder_and_logits=True, use_post_attn_norm=True,
                   final_logit_softcap=30.0, attn_logits_soft_cap=50.0)  # fmt: skip


@model
def penzai_mistral() -> Any:
    from penzai.models.transformer.variants import llamalike_common as common

    return _penzai(attention_type=common.AttentionTypeSlidingWindowCausal(3))


@model
def penzai_gpt_neox() -> Any:
    from penzai import pz
    from penzai.models.transformer.variants import gpt_neox

    whole = gpt_neox.build_gpt_neox_transformer(
        gpt_neox.GPTNeoXTransformerConfig(
            num_attention_heads=HEADS, embedding_dim=WIDTH, projection_dim=8, mlp_hidden_dim=32, num_decoder_blocks=2,
            vocab_size=VOCABULARY, activation_fn="gelu_exact", rope_subset_size=4, rope_wavelength=100.0,
            layernorm_epsilon=1e-5, parameter_dtype=jnp.float32, activation_dtype=jnp.float32,
        ),
        init_base_rng=jax.random.key(0),
    )  # fmt: skip
    return _penzai_function(pz, whole)
