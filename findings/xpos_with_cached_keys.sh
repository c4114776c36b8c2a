#!/usr/bin/env bash
# rotary-embedding-torch, xPos: a query rotated beside cached keys gets other scores than in the whole sequence.
#
# Guess:   rotate_queries_with_cached_keys gives the rows that rotate_queries_and_keys gives for the last queries.
# True:    the rotation agrees and the scale does not. The scale counts from the middle of the tokens that it is asked about:
#          the middle of all keys for the keys, and the middle of the new tokens for the query. One token at a time, scores
#          are wrong by a factor that grows with the length, so a model decodes with another decay than it was trained with.
# Package: rotary-embedding-torch 0.9.1, torch 2.13.0 (CPU)
# Source:  rotary_embedding_torch/rotary_embedding_torch.py: rotate_queries_with_cached_keys, get_scale (len(t) // 2)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet rotary-embedding-torch==0.9.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from rotary_embedding_torch import RotaryEmbedding

print(f"rotary-embedding-torch {version('rotary-embedding-torch')}, torch {torch.__version__}")
ratios, turned = {}, {}
for xpos in (True, False):
    for length in (16, 256, 1024):
        torch.manual_seed(0)
        query, key = torch.rand(1, 1, length, 32) + 1, torch.rand(1, 1, length, 32) + 1
        rotary = RotaryEmbedding(dim=32, use_xpos=xpos)
        if xpos:
            whole_query, whole_key = rotary.rotate_queries_and_keys(query, key)
        else:
            whole_query, whole_key = rotary.rotate_queries_or_keys(query), rotary.rotate_queries_or_keys(key)
        whole = (whole_query @ whole_key.mT)[0, 0, -1, -1]
        fresh = RotaryEmbedding(dim=32, use_xpos=xpos)
        last_query, last_key = fresh.rotate_queries_with_cached_keys(query[:, :, -1:], key)
        ratios[xpos, length] = float((last_query @ last_key.mT)[0, 0, -1, -1] / whole)
        print(f"use_xpos={xpos}, {length} tokens: score of the last token with itself, cached over whole: {ratios[xpos, length]:.4f}")
assert all(abs(ratios[False, length] - 1) < 1e-4 for length in (16, 256, 1024)), "plain rotations differ with cached keys now"
assert abs(ratios[True, 16] - 1) > 1e-3 and abs(ratios[True, 1024] - 1) > 0.1, "the scale agrees with cached keys now"
PYTHON
