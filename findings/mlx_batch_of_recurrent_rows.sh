#!/usr/bin/env bash
# mlx-lm's batch generator lets pads into the recurrent states of Mamba, RWKV-7, Jamba and Baichuan-M1.
#
# Guess:   a prompt in a batch gets the numbers that it gets alone. A model that cannot be batched is refused, as Llama 4
#          is ("ChunkedKVCache does not yet support batching").
# True:    shorter prompts of a batch are padded on the left. Mamba 2 and Falcon-H1 mask the pads of their states; Mamba,
#          RWKV-7, Jamba and Baichuan-M1 do not, and are not refused. Log probabilities of the first new token differ.
#          The longest prompt of the batch has no pads and is right: what a prompt gets depends on its neighbours.
# Package: mlx-lm 0.32.2, mlx 0.32.4 (CPU)
# Source:  mlx_lm/models: mamba.py and rwkv7.py never make a mask, though their cache (ArraysCache) is one that can be
#          batched. jamba.py makes one, and its Mamba mixers do not take it. baichuan_m1.py has a convolution of keys and
#          values, and masks its attention only. mamba2.py passes the mask of create_ssm_mask to its convolution and scan.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "mlx[cpu]==0.32.4" mlx-lm==0.32.2
cat > "$folder/batch.py" <<'PYTHON'
import importlib
from importlib.metadata import version

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm.generate import BatchGenerator

print(f"mlx-lm {version('mlx-lm')}, mlx {version('mlx')}")
mx.set_default_device(mx.cpu)
SHARED = {
    "hidden_size": 32, "num_hidden_layers": 4, "intermediate_size": 64, "num_attention_heads": 4, "head_dim": 8,
    "num_key_value_heads": 2, "vocab_size": 64, "rms_norm_eps": 1e-6, "max_position_embeddings": 256,
    "rope_theta": 10000.0, "tie_word_embeddings": False,
}
STATES = {"state_size": 8, "conv_kernel": 4, "use_bias": False, "use_conv_bias": True, "time_step_rank": 4}
MODELS = {
    "mamba2": {**STATES, "num_heads": 4, "head_dim": 16, "layer_norm_epsilon": 1e-5, "n_groups": 1,
               "time_step_limit": (0.0, float("inf"))},
    "falcon_h1": {"mamba_d_ssm": 32, "mamba_d_head": 8, "mamba_n_heads": 4, "mamba_d_state": 8, "mamba_chunk_size": 8},
    "mamba": STATES,
    "rwkv7": {"norm_eps": 1e-5, "a_low_rank_dim": 4, "v_low_rank_dim": 4, "gate_low_rank_dim": 4,
              "decay_low_rank_dim": 4},
    "jamba": {"attn_layer_offset": 1, "attn_layer_period": 2, "expert_layer_offset": 1, "expert_layer_period": 2,
              "mamba_d_conv": 4, "mamba_expand": 2, "mamba_d_state": 8, "num_experts": 2, "num_experts_per_tok": 1},
    "baichuan_m1": {"sliding_window": 8, "sliding_window_layers": [0, 2], "conv_window": 2,
                    "num_swa_attention_heads": 4, "num_swa_key_value_heads": 2},
}
PROMPTS = [[3, 5, 7, 9, 11], list(range(2, 40, 2))]


def first(model, prompts):
    """Log probabilities of the first new token of each prompt."""
    generator = BatchGenerator(model, max_tokens=1)
    order, found = generator.insert(prompts, [1] * len(prompts)), {}
    while len(found) < len(order):
        found |= {answer.uid: answer.logprobs for answer in generator.next()[1]}
    return [found[uid] for uid in order]


differences = {}
for name, own in MODELS.items():
    module = importlib.import_module(f"mlx_lm.models.{name}")
    mx.random.seed(0)
    model = module.Model(module.ModelArgs.from_dict({**SHARED, "model_type": name, **own}))
    draw = lambda weight: mx.random.normal(weight.shape) * 0.3 if weight.ndim > 1 else weight
    model.update(tree_map(draw, model.parameters()))
    batch, alone = first(model, PROMPTS), [first(model, [prompt])[0] for prompt in PROMPTS]
    differences[name] = [float(mx.abs(a - b).max()) for a, b in zip(batch, alone)]
    print(f"{name:12} 5 tokens beside 19: {differences[name][0]:.5f}, 19 tokens beside 5: {differences[name][1]:.5f}")
assert all(longer < 1e-4 for _, longer in differences.values()), "a prompt without pads differs too"
assert all(differences[name][0] < 1e-4 for name in ("mamba2", "falcon_h1")), "a model with a mask reads pads now"
assert all(differences[name][0] > 0.01 for name in list(MODELS)[2:]), "a model without a mask hides its pads now"
PYTHON
"$folder/venv/bin/python" "$folder/batch.py"
