#!/usr/bin/env bash
# scaled_dot_product_attention with attn_mask and is_causal: the default backend applies both, the math backend refuses.
#
# Guess:   the documentation says that an error is thrown if both are set, so every backend throws it.
# True:    on a CPU the default dispatch takes the flash kernel, which applies both without a word. The math backend, which
#          is taken for other dtypes, shapes or by sdpa_kernel, refuses the same call. A test that runs on the one says
#          nothing of the other.
# Package: torch 2.13.0 (CPU)
# Source:  aten/src/ATen/native/transformers/attention.cpp: _scaled_dot_product_attention_math has the check
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

print(f"torch {torch.__version__}")
torch.manual_seed(0)
x, visible = torch.randn(1, 1, 3, 8), torch.tensor([[True, False, True]] * 3)
both = scaled_dot_product_attention(x, x, x, visible & torch.ones(3, 3).tril().bool())
default = scaled_dot_product_attention(x, x, x, visible, is_causal=True)
print("default: both hold" if torch.allclose(default, both, atol=1e-6) else "default: not both")
try:
    with sdpa_kernel(SDPBackend.MATH):
        scaled_dot_product_attention(x, x, x, visible, is_causal=True)
    refused = False
except RuntimeError as error:
    refused = True
    print(f"math: {str(error).splitlines()[0]}")
assert torch.allclose(default, both, atol=1e-6), "the default backend applies one of them now, or none"
assert refused, "the math backend takes both now"
PYTHON
