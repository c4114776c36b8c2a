#!/usr/bin/env bash
# BigBird in transformers: in eval mode the random blocks of sparse attention are all the first block, which counts four times.
#
# Guess:   a call in eval mode attends to random blocks drawn once by a fixed seed, as a call in train mode does.
# True:    in eval mode the table of random blocks stays at zeros. Each of the three random blocks of a query is then block 0,
#          which it sees already as a global one: equal scores give it 4 of 8 parts of the weight, and 1 of 8 in train mode.
# Package: transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  transformers/models/big_bird/modeling_big_bird.py: _bigbird_block_rand_mask_with_head, _bigbird_block_rand_mask
#          (returns its zeros where not self.training)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet transformers==5.23.0
TRANSFORMERS_VERBOSITY=error "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch
import transformers
from transformers import BigBirdConfig, BigBirdModel

print(f"transformers {transformers.__version__}, torch {torch.__version__}")
torch.manual_seed(0)
width, block, length = 32, 4, 64
sizes = {"vocab_size": 100, "hidden_size": width, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 32}
config = BigBirdConfig(**sizes, block_size=block, num_random_blocks=3, attention_type="block_sparse", max_position_embeddings=128)
model = BigBirdModel(config)
attention = model.encoder.layer[0].attention.self
with torch.no_grad():
    attention.query.weight.zero_()  # all scores are equal, so that a weight counts how often a key is seen
    attention.query.bias.zero_()
number = torch.eye(width)[torch.arange(length) // block][None]  # a value says the number of its block
attention.value.register_forward_hook(lambda module, inputs, result: number.view_as(result))
seen = []
attention.register_forward_hook(lambda module, inputs, result: seen.append(result[0].reshape(length, width)[33].tolist()))
ids, first = torch.randint(3, 60, (1, length)), {}
for mode in ("eval", "train"):
    getattr(model, mode)()
    model(ids)
    parts = {place: round(weight, 3) for place, weight in enumerate(seen[-1]) if weight > 0}
    first[mode] = seen[-1][0]
    print(f"{mode}: weight of each block for a query of block 8: {parts}")
assert abs(first["eval"] - 0.5) < 1e-4, "the first block counts another number of times in eval mode now"
assert abs(first["train"] - 0.125) < 1e-4, "random blocks are drawn in another way in train mode now"
PYTHON
