#!/usr/bin/env bash
# transformers 4: Mistral in Flax with sliding_window=None sees no token but itself; with a window of 4 it sees five.
#
# Guess:   None means no window, so that the last token sees all before it, as the same class in torch; a window of 4
#          shows the token and the three before it.
# True:    the mask is triu(causal, k=-(window or 0)). None becomes 0, which leaves the diagonal: every token attends to
#          itself alone. A window of w shows w + 1 tokens.
# Package: transformers 4.53.3, flax 0.10.2, jax 0.4.38
# Source:  transformers/models/mistral/modeling_flax_mistral.py: FlaxMistralAttention.setup (self.causal_mask)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==4.53.3 jax==0.4.38 jaxlib==0.4.38 flax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from transformers import FlaxMistralForCausalLM, MistralConfig

print(", ".join(f"{name} {version(name)}" for name in ("transformers", "flax", "jax")))
sizes = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "num_key_value_heads": 2, "max_position_embeddings": 16}
seen = {}
for window in (None, 4, 16):
    model = FlaxMistralForCausalLM(MistralConfig(**sizes, sliding_window=window), seed=0)
    tokens = np.arange(1, 11)[None]
    usual, count = model(tokens).logits[0, -1], 0
    for place in range(10):  # the last token sees those whose change changes its logits
        other = tokens.copy()
        other[0, place] = 20
        count += bool(np.abs(model(other).logits[0, -1] - usual).max() > 1e-7)
    seen[window] = count
    print(f"sliding_window={window}: the last of 10 tokens sees {count} of them")
assert seen[None] == 1, "no window is another thing now"
assert seen[4] == 5, "a window counts in another way now"
assert seen[16] == 10
PYTHON
