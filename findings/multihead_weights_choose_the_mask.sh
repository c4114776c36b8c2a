#!/usr/bin/env bash
# nn.MultiheadAttention with attn_mask and is_causal obeys one of them; need_weights decides which.
#
# Guess:   need_weights says whether attention weights are returned, and changes no output. A mask given together with
#          is_causal holds in both cases, since is_causal is documented as a hint about the mask.
# True:    with need_weights=False only the causal flag holds and the mask is dropped; with need_weights=True only the
#          mask holds and the flag is dropped. A causal layer with a padding mask in attn_mask sees pads in training
#          and later tokens as soon as someone asks for the weights, in silence both times.
# Package: torch 2.13.0 (CPU)
# Source:  torch/nn/functional.py, multi_head_attention_forward: "if is_causal and key_padding_mask is None and not
#          need_weights: attn_mask = None"
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch
from torch import nn

print(f"torch {torch.__version__}")
torch.manual_seed(0)
layer, x = nn.MultiheadAttention(8, 1, batch_first=True).eval(), torch.randn(1, 3, 8)
hidden = torch.tensor([[False, True, False]] * 3)
later = torch.ones(3, 3).triu(1).bool()
found = {}
with torch.no_grad():
    for weights in (False, True):
        both = layer(x, x, x, attn_mask=hidden, is_causal=True, need_weights=weights)[0]
        cases = {"only the mask": hidden, "only the flag": later, "both": hidden | later}
        for name, mask in cases.items():
            if torch.allclose(both, layer(x, x, x, attn_mask=mask, need_weights=weights)[0], atol=1e-6):
                found[weights] = name
        print(f"need_weights={weights}: {found[weights]} holds")
assert found == {False: "only the flag", True: "only the mask"}, found
PYTHON
