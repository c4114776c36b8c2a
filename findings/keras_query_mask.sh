#!/usr/bin/env bash
# Keras's MultiHeadAttention leaves an explicit query_mask out; it takes the mask that is attached to the query alone.
#
# Guess:   query_mask=[[True, True, False, False]] hides every key from the last two queries, which then give the mean of
#          all values, as a row does whose keys are all hidden by attention_mask.
# True:    the argument changes nothing: the last two queries attend as the others do, and no mask is attached to the
#          output, so that a pooling layer behind it counts pads. key_mask and value_mask are taken as they are given.
# Package: keras 3.15.1, jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6
# Source:  keras/src/layers/attention/multi_head_attention.py, call: query_mask = backend.get_keras_mask(query)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import keras
import numpy as np

print(f"keras {version('keras')}, jax {version('jax')}")
keras.utils.set_random_seed(0)
x = np.random.default_rng(0).standard_normal((1, 4, 8)).astype("float32")
real = np.array([[True, True, False, False]])
layer = keras.layers.MultiHeadAttention(2, 4)


def output(**masks):
    found = layer(keras.ops.convert_to_tensor(x), keras.ops.convert_to_tensor(x), **masks)
    return np.array(found), getattr(found, "_keras_mask", None)


plain, _ = output()
given, attached = output(query_mask=real)
queries = output(attention_mask=np.broadcast_to(real[:, :, None], (1, 4, 4)))[0]
keys = output(value_mask=real)[0]
print("changed by query_mask:                        ", float(np.abs(given - plain).max()))
print("changed by the same mask as attention_mask:   ", float(np.abs(queries - plain).max()))
print("changed by value_mask:                        ", float(np.abs(keys - plain).max()))
print("mask of the output:                           ", attached)
assert np.array_equal(given, plain), "query_mask is taken now"
assert attached is None, "the output has a mask now"
assert np.abs(queries - plain).max() > 1e-3 < np.abs(keys - plain).max(), "another mask is left out now"
PYTHON
