#!/usr/bin/env bash
# transformers' continuous batching generates from the last token only with models that compute their attention themselves.
#
# Guess:   `generate_batch` gives the greedy tokens of `generate`, or refuses a model that its paged cache cannot serve, as
#          it refuses Falcon-H1 ("Invalid layer type: hybrid").
# True:    the paged cache is read by the attention functions `paged|sdpa`, `paged|eager` and their like. BLOOM, GPT-J and
#          CodeGen do not call an attention function, are not refused, and never write to the cache. The first new token
#          is right. Each later one is the most likely token after the one before it, as if the prompt were one token
#          long. One request alone is answered so, too. The only sign is a warning that the attention implementation of
#          the model cannot be set dynamically.
# Package: transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  transformers/generation/continuous_batching sets the attention implementation of the configuration and passes
#          the cache as a keyword. transformers/models/bloom/modeling_bloom.py, BloomAttention.forward: `baddbmm` and a
#          softmax, with `layer_past`, which is none.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy psutil
"$folder/venv/bin/pip" install --quiet transformers==5.23.0
cat > "$folder/paged.py" <<'PYTHON'
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

print(f"transformers {transformers.__version__}, torch {torch.__version__}")
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
PROMPT, NEW = [3, 5, 7, 9, 11], 6
MODELS = {
    "llama": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2},
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "gptj": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64},
    "codegen": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 64},
}


def greedy(model, tokens, past):
    """New tokens of a model without any cache; without `past`, each from the one before it alone."""
    for _ in range(NEW):
        seen = tokens if past or len(tokens) == len(PROMPT) else tokens[-1:]
        tokens = [*tokens, int(model(torch.tensor([seen]), use_cache=False).logits[0, -1].argmax())]
    return tokens[len(PROMPT) :]


for name, sizes in MODELS.items():
    torch.manual_seed(0)
    ids = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **sizes, **ids)).eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.3)
    with torch.no_grad():
        right, forgetful = greedy(model, PROMPT, past=True), greedy(model, PROMPT, past=False)
    options = GenerationConfig(max_new_tokens=NEW, do_sample=False, eos_token_id=-1, pad_token_id=0)
    (answer,) = model.generate_batch(inputs=[PROMPT], generation_config=options, progress_bar=False).values()
    print(f"{name:8} whole prompt {right}, last token only {forgetful}, generate_batch {answer.generated_tokens}")
    assert right != forgetful, "the weights do not tell the two apart"
    expected = right if name == "llama" else forgetful
    assert answer.generated_tokens == expected, f"generate_batch of {name} is another now"
PYTHON
"$folder/venv/bin/python" "$folder/paged.py"
