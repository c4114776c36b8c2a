#!/usr/bin/env bash
# performer-pytorch: the last key of a causal attention moves the outputs of all tokens before it, by as much as their size.
#
# Guess:   causal=True is exact, as in any linear attention by running sums: a later token changes no earlier output.
# True:    the features of all keys are divided by the exponential of their largest projection, over all tokens, and then a
#          constant is added to them. The division cancels in the quotient, the constant does not: one large key, anywhere
#          later, drowns the features of earlier ones in the constant.
# Package: performer-pytorch 1.1.4, torch 2.13.0 (CPU)
# Source:  performer_pytorch/performer_pytorch.py: softmax_kernel (amax over the last two axes, then + eps)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy setuptools
"$folder/venv/bin/pip" install --quiet performer-pytorch==1.1.4
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from performer_pytorch import FastAttention

print(f"performer-pytorch {version('performer-pytorch')}, torch {torch.__version__}")
torch.manual_seed(0)
attention = FastAttention(dim_heads=16, nb_features=64, causal=True).double().eval()
query, key, value = (torch.randn(1, 1, 32, 16, dtype=torch.float64) for _ in range(3))
outputs = attention(query, key, value)[0, 0, :-1]
changes = {}
for size in (0.5, 3.0, 6.0):
    later = key.clone()
    later[..., -1, :] = size * torch.randn(16, dtype=torch.float64)
    changes[size] = float((attention(query, later, value)[0, 0, :-1] - outputs).abs().max())
    print(f"the last key replaced by one of size {size}: earlier outputs move by {changes[size]:.3f}, largest {outputs.abs().max():.2f}")
assert changes[0.5] < 1e-6, "a small key moves earlier outputs now"
assert changes[3.0] > 0.1 and changes[6.0] > 0.5, "a large key leaves earlier outputs as they are now"
PYTHON
