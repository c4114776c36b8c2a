#!/usr/bin/env bash
# Position ids that restart separate packed documents in transformers, but only without a cache.
#
# Guess:   a decoder of transformers that gets a packed row (position ids 0 1 2 0 1 2, no mask) keeps the documents
#          apart: its masks are made from the position ids. Whether keys are kept for later does not matter in a single
#          call, least of all in training mode.
# True:    the documents are found only if the call has no cache. `use_cache` of the configuration is True by default, in
#          training mode too, so that a hand-written loop mixes packed documents in silence; with use_cache=False the
#          second document gives what it gives alone.
# Package: transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  transformers/masking_utils.py, _preprocess_mask_arguments: packed sequences are looked for under the
#          condition `past_key_values is None`; LlamaModel.forward makes a DynamicCache before it makes the mask.
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
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=4, initializer_range=0.3,
)
model = LlamaForCausalLM(config).train()  # it has no dropout
ids = torch.randint(3, 50, (1, 10))
restarting = torch.arange(5).repeat(2)[None]
differences = {}
for name, options in (("default", {}), ("use_cache=False", {"use_cache": False})):
    with torch.no_grad():
        packed = model(ids, position_ids=restarting, **options).logits[0, 5:]
        alone = model(ids[:, 5:], position_ids=restarting[:, 5:], **options).logits[0]
    differences[name] = float((packed - alone).abs().max())
    print(f"second document, packed against alone, {name}: logits differ by {differences[name]:.2g}")
print("Packed documents see each other with a cache, which is the default, and do not without one.")
assert differences["default"] > 0.1, "the documents are separate now"
assert differences["use_cache=False"] < 1e-4, "the documents are no longer separate"
PYTHON
