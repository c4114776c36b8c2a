#!/usr/bin/env bash
# In float64, eager attention of transformers gives NaN at every token of a left-padded row; in float32 it does not.
#
# Guess:   a model cast to float64 gives the numbers of float32 with more digits. A left-padded row, whose first queries
#          see no key, stays finite as in float32: the mask adds the least finite number, not -inf, for that reason.
# True:    the mask adds the least finite number of float64, and the softmax is always computed in float32, where that
#          number is -inf. A query without a key is NaN, the next layer has NaN as a value, and NaN times a weight of
#          zero is NaN: all real tokens are lost after two layers. SDPA, which has no such cast, is finite.
#          A float64 copy as the reference of a padded batch is thus no reference with the eager backend.
# Package: transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  transformers/models/llama/modeling_llama.py, eager_attention_forward: softmax(..., dtype=torch.float32);
#          transformers/masking_utils.py, eager_mask: torch.finfo(dtype).min
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0
"$folder/venv/bin/python" - <<'PYTHON'
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

print(f"torch {torch.__version__}, transformers {transformers.__version__}")
config = LlamaConfig(
    vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=4,
)
torch.manual_seed(0)
ids = torch.randint(3, 50, (1, 10))
mask = torch.ones(1, 10, dtype=torch.long)
mask[:, :3] = 0
found = {}
for backend in ("eager", "sdpa"):
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(0)
        model = LlamaForCausalLM._from_config(config, attn_implementation=backend).eval().to(dtype)
        with torch.no_grad():
            logits = model(ids, attention_mask=mask).logits
        found[backend, dtype] = int(logits[0, 3:].isnan().any(-1).sum())
        print(f"{backend}, {dtype}: {found[backend, dtype]} of 7 real tokens are NaN")
print("Only eager attention in float64 loses the real tokens of a left-padded row.")
assert found.pop(("eager", torch.float64)) == 7, "eager attention in float64 is finite now"
assert not any(found.values()), "another backend or dtype gives NaN now"
PYTHON
