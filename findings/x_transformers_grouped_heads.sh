#!/usr/bin/env bash
# x-transformers deals key and value heads out to query heads in turns; torch, Llama and most others in blocks.
#
# Guess:   with four query heads and two key heads, query heads 0 and 1 read key head 0, as in Llama's checkpoints.
# True:    query heads 0 and 2 read it. All shapes fit, so weights that are moved from one to the other load without a word
#          and give wrong numbers; enable_gqa of torch's attention, which x-transformers may be set to call, counts in blocks.
# Package: x-transformers 2.31.10, torch 2.13.0 (CPU)
# Source:  x_transformers/attend.py: forward (repeat of the heads of keys and values)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet x-transformers==2.31.10
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from torch.nn.functional import scaled_dot_product_attention
from x_transformers.attend import Attend

print(f"x-transformers {version('x-transformers')}, torch {torch.__version__}")
query, key = torch.zeros(1, 4, 3, 8), torch.zeros(1, 2, 3, 8)
value = torch.arange(2.0).reshape(1, 2, 1, 1).expand(1, 2, 3, 8)  # a head's values are its number
heads = {f"Attend(flash={flash})": Attend(flash=flash)(query, key, value)[0] for flash in (False, True)}
heads["torch, enable_gqa"] = scaled_dot_product_attention(query, key, value, enable_gqa=True)
read = {name: result[0, :, 0, 0].int().tolist() for name, result in heads.items()}
for name, numbers in read.items():
    print(f"{name}: query heads 0 to 3 read key heads {numbers}")
assert read["torch, enable_gqa"] == [0, 0, 1, 1]
assert read["Attend(flash=False)"] == read["Attend(flash=True)"] == [0, 1, 0, 1], "heads are dealt out in another way now"
PYTHON
