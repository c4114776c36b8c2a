#!/usr/bin/env bash
# local-attention: with window_size=4 a causal token sees 5 to 8 keys by its place, and with exact_windowsize=True five.
#
# Guess:   window_size=4 means the token and the three before it, as sliding windows of other libraries count.
# True:    a token sees its own block of four and the one before: 5 keys at the start of a block and 8 at its end, so the
#          same text gives other outputs one token later. exact_windowsize=True makes it even, and sees one key more than
#          the window says.
# Package: local-attention 1.11.2, torch 2.13.0 (CPU)
# Source:  local_attention/local_attention.py: forward (causal_mask | bq_t > bq_k + max_causal_window_size)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet local-attention==1.11.2
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from local_attention import LocalAttention

print(f"local-attention {version('local-attention')}, torch {torch.__version__}")
counts = {}
for exact in (False, True):
    attention = LocalAttention(window_size=4, causal=True, exact_windowsize=exact, use_rotary_pos_emb=False, dim=16).eval()
    zeros, places = torch.zeros(1, 1, 16, 16), torch.eye(16)[None, None]
    weights = attention(zeros, zeros, places).reshape(16, 16)  # entry k of a row is the weight of key k
    counts[exact] = [int((row > 0).sum()) for row in weights[8:]]
    print(f"exact_windowsize={exact}: keys that tokens 8 to 15 see: {counts[exact]}")
assert counts[False] == [5, 6, 7, 8] * 2, "blocks are read in another way now"
assert counts[True] == [5] * 8, "an exact window counts in another way now"
PYTHON
