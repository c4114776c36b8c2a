#!/usr/bin/env bash
# flax.nnx: attention with decode=True goes on past the end of its cache, and each further token replaces the last key.
#
# Guess:   a token more than init_cache made room for is refused, or takes the place of the oldest one.
# True:    cache_index goes on counting, the write is clamped to the last place, and every further token overwrites the one
#          before it. Outputs stay finite and are wrong from the first token past the cache on.
# Package: flax 0.12.8, jax 0.10.2
# Source:  flax/nnx/nn/attention.py: MultiHeadAttention.__call__ (dynamic_update_slice at cache_index)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet jax==0.10.2 jaxlib==0.10.2 flax==0.12.8
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

print(f"flax {version('flax')}, jax {jax.__version__}")
room, length = 4, 7
cached = nnx.MultiHeadAttention(2, 8, 8, rngs=nnx.Rngs(0), decode=True)
whole = nnx.MultiHeadAttention(2, 8, 8, rngs=nnx.Rngs(0), decode=False)
cached.init_cache((1, room, 8))
tokens = jax.random.normal(jax.random.PRNGKey(1), (1, length, 8))
outputs = np.concatenate([cached(tokens[:, i : i + 1]) for i in range(length)], 1)
apart = np.abs(outputs - whole(tokens, mask=nnx.make_causal_mask(jnp.ones((1, length))))).max(-1)[0]
keys = np.asarray(cached.cached_key[...]).reshape(room, -1)
alone = nnx.MultiHeadAttention(2, 8, 8, rngs=nnx.Rngs(0), decode=True)
alone.init_cache((1, room, 8))
alone(tokens[:, -1:])
last = np.asarray(alone.cached_key[...]).reshape(room, -1)[0]
print(f"room for {room} tokens, cache_index {int(cached.cache_index[...])}; differences of each output: {apart.round(3)}")
print("the last place holds the key of the last token:", bool(np.allclose(keys[-1], last, atol=1e-5)))
assert apart[:room].max() < 1e-5 and apart[room:].min() > 1e-2, "tokens past the cache come out right now"
assert int(cached.cache_index[...]) == length and np.allclose(keys[-1], last, atol=1e-5), "another key is replaced now"
PYTHON
