#!/usr/bin/env bash
# generate of a model in training mode with gradient checkpointing forgets its prompt after the first token.
#
# Guess:   gradient checkpointing concerns the backward pass. In training mode transformers logs that it sets
#          use_cache=False, so generate (as for rollouts in a training loop) is slower and gives the same tokens.
# True:    the first token is right. From then on the layers drop the cache, and generate still passes the last token
#          alone, at its position: each further token is computed without those before it. With use_cache=False in the
#          call all tokens are right.
# Package: transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  transformers/modeling_layers.py, GradientCheckpointingLayer.__call__ sets past_key_values=None for its layer;
#          generation/utils.py decides before that only the last token is an input.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.23.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

print(f"torch {torch.__version__}, transformers {transformers.__version__}")
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    initializer_range=0.3, eos_token_id=None, bos_token_id=None, pad_token_id=0,
)
model, prompt = LlamaForCausalLM(config), torch.randint(1, 50, (1, 5))


def generated(**options):
    return model.generate(prompt, max_new_tokens=8, do_sample=False, **options)[0, 5:].tolist()


tokens = {"evaluation mode": (model.eval(), generated())[1], "training mode": (model.train(), generated())[1]}
model.gradient_checkpointing_enable()
tokens["training mode, checkpointing"] = generated()
tokens["training mode, checkpointing, use_cache=False"] = generated(use_cache=False)
for name, found in tokens.items():
    print(f"{name}: {found}")
expected, plain, checkpointed, uncached = tokens.values()
print("With checkpointing in training mode, all tokens after the first are generated without the prompt.")
assert plain == uncached == expected, "the other calls differ now"
assert checkpointed[0] == expected[0] and checkpointed != expected, "checkpointing changes nothing now"
PYTHON
