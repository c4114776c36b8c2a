#!/usr/bin/env bash
# BigBird in transformers: each training call sets NumPy's global seed, so what draws from it repeats after every step.
#
# Guess:   the random blocks come from a generator of the layer, and a call leaves the random state of the process alone.
# True:    a training call runs numpy.random.seed with the number of the layer, so numpy.random.permutation gives the same
#          order after each step: an augmentation or a shuffle in the same process draws one and the same sample for ever.
# Package: transformers 5.23.0, torch 2.13.0 (CPU), numpy 2.4.6
# Source:  transformers/models/big_bird/modeling_big_bird.py: bigbird_block_sparse_attention (np.random.seed(seed))
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet transformers==5.23.0
TRANSFORMERS_VERBOSITY=error "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import numpy as np
import torch
import transformers
from transformers import BigBirdConfig, BigBirdModel

print(f"transformers {transformers.__version__}, numpy {np.__version__}")
sizes = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
config = BigBirdConfig(**sizes, block_size=4, num_random_blocks=2, attention_type="block_sparse", max_position_embeddings=128)
model = BigBirdModel(config)
orders = {"train": [], "eval": []}
for mode, drawn in orders.items():
    getattr(model, mode)()
    np.random.seed(2026)
    for _ in range(3):
        model(torch.randint(3, 60, (1, 64)))
        drawn.append(np.random.permutation(6).tolist())
    print(f"{mode}: the order of six samples drawn after each of three calls: {drawn}")
assert orders["train"][0] == orders["train"][1] == orders["train"][2], "a training call leaves the seed alone now"
assert orders["eval"][0] != orders["eval"][1], "a call in eval mode sets the seed now"
PYTHON
