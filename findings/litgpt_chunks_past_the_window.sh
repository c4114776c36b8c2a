#!/usr/bin/env bash
# litgpt: a prompt fed in chunks, as its error message recommends, is wrong after the window of a layer is full.
#
# Guess:   a prompt longer than a sliding window may be fed in chunks of at most the window; the logits are those of one call.
# True:    that holds until the ring of the cache is full, and for single tokens. Then the new keys of a chunk overwrite keys
#          that its first tokens still need, and the mask of the chunk, by places in the prompt, shows every place of the
#          ring: tokens see the later ones of their chunk. Nothing is said; only a chunk larger than the window is refused.
# Package: litgpt 0.5.13, torch 2.13.0 (CPU)
# Source:  litgpt/model.py: KVCache.forward (input_pos % max_cache_len), CausalSelfAttention.forward (mask cut to the ring)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet litgpt==0.5.13
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from litgpt.config import Config
from litgpt.model import GPT

print(f"litgpt {version('litgpt')}, torch {torch.__version__}")
torch.manual_seed(0)
window, length = 8, 24
layers = {"n_layer": 2, "n_head": 2, "n_embd": 32, "sliding_window_size": window, "sliding_window_indices": [1, 1]}
kinds = {"norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP", "intermediate_size": 64, "parallel_residual": False}
model = GPT(Config(block_size=64, vocab_size=50, padded_vocab_size=50, rotary_percentage=1.0, bias=False, **layers, **kinds)).eval()
ids, apart = torch.randint(0, 50, (1, length)), {}
with torch.no_grad():
    whole = model(ids)
    for chunk in (1, 4, 8):
        model.max_seq_length = 32
        model.set_kv_cache(1)
        parts = [model(ids[:, i : i + chunk], input_pos=torch.arange(i, i + chunk)) for i in range(0, length, chunk)]
        moved = (torch.cat(parts, 1) - whole).abs().amax(-1)[0]
        apart[chunk] = (float(moved[:window].max()), float(moved[window:].max()))
        print(f"chunks of {chunk}: logits differ by {apart[chunk][0]:.1e} up to token {window}, by {apart[chunk][1]:.1e} after it")
        model.clear_kv_cache()
assert apart[1][1] < 1e-5, "single tokens differ too now"
assert all(apart[chunk][0] < 1e-5 and apart[chunk][1] > 1e-2 for chunk in (4, 8)), "chunks past the window agree now"
PYTHON
