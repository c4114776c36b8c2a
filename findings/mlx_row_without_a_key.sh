#!/usr/bin/env bash
# MLX's fast attention gives a query without a visible key the mean of all values; the same mask as numbers gives NaN.
#
# Guess:   a row whose keys are all hidden is zeros, as in torch's SDPA, or NaN, whichever form the mask has.
# True:    a boolean mask gives the mean of all values, hidden ones too: a left-padded row carries its pads on as numbers
#          that look right. The same mask as minus infinities gives NaN.
# Package: mlx 0.32.4, mlx-cpu 0.32.4
# Source:  mlx/fast.cpp, scaled_dot_product_attention: where(mask, scores, finfo.min)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mlx==0.32.4 mlx-cpu==0.32.4 numpy
"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import mlx.core as mx
import numpy as np

print(f"mlx {version('mlx')}")
query, key, value = mx.zeros((1, 1, 1, 8)), mx.zeros((1, 1, 3, 8)), mx.array(np.eye(3, 8, dtype=np.float32)[None, None])
attend = mx.fast.scaled_dot_product_attention
boolean = np.array(attend(query, key, value, scale=1.0, mask=mx.array([[[[False] * 3]]])))[0, 0, 0, :3]
added = mx.array(np.full((1, 1, 1, 3), -np.inf, np.float32))
numbers = np.array(attend(query, key, value, scale=1.0, mask=added))[0, 0, 0, :3]
print("weights of three hidden keys, boolean mask:", boolean.round(4))
print("weights of three hidden keys, minus infinity:", numbers)
assert np.allclose(boolean, 1 / 3), "a boolean mask hides the values now"
assert np.isnan(numbers).all(), "minus infinity gives numbers now"
PYTHON
