#!/usr/bin/env bash
# Beam search of RecurrentGemma with a cache continues beams from the states of other beams.
#
# Guess:   beam search finds the same tokens with a cache and without one. transformers reorders the cache when beams are
#          dropped and copied, and refuses a model whose cache it cannot reorder, as it refuses RWKV.
# True:    the keys and values of RecurrentGemma are in the cache and are reordered. The states of its recurrent layers and
#          of their convolutions are attributes of the layers, and stay where they are: after the first step in which a
#          beam is copied to another place, it goes on from the state of the beam that was there. Greedy search is right,
#          beam search without a cache is right. Falcon-H1, whose states are in the cache, is right in all three.
# Package: transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  transformers/models/recurrent_gemma/modeling_recurrent_gemma.py: `self.rg_lru.recurrent_states` and
#          `self.conv1d_state`; transformers/generation/utils.py reorders what `reorder_cache` of the cache knows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet transformers==5.23.0
cat > "$folder/beams.py" <<'PYTHON'
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

print(f"transformers {transformers.__version__}, torch {torch.__version__}")
transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
SHARED = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8,
    "vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None,
}
MODELS = {
    "falcon_h1": {"num_key_value_heads": 2, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8,
                  "mamba_d_state": 8, "mamba_chunk_size": 8},
    "recurrent_gemma": {"num_key_value_heads": 1, "lru_width": 32, "block_types": ["recurrent", "attention"],
                        "attention_window_size": 64},
}
PROMPT = torch.tensor([[3, 5, 7, 9, 11, 2, 60, 33]])

for name, own in MODELS.items():
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **SHARED, **own)).double().eval()
    for key, weight in model.named_parameters():
        if weight.dim() > 1 and "A_log" not in key:
            torch.nn.init.normal_(weight, std=0.4)

    def new(beams, cached):
        """Ten new tokens, and their log probability by one call of the model on the whole text."""
        options = GenerationConfig(
            max_new_tokens=10, do_sample=False, num_beams=beams, use_cache=cached, eos_token_id=None, pad_token_id=0
        )
        text = model.generate(PROMPT, attention_mask=torch.ones_like(PROMPT), generation_config=options)
        with torch.no_grad():
            scores = model(text, use_cache=False).logits[:, :-1].log_softmax(-1).gather(2, text[:, 1:, None])
        return text[0, 8:].tolist(), float(scores[0, 7:].sum())

    for beams in (1, 4):
        (cached, with_cache), (plain, without) = new(beams, True), new(beams, False)
        print(f"{name:15} {beams} beams: with cache {cached} {with_cache:.2f}, without {plain} {without:.2f}")
        expected = name == "falcon_h1" or beams == 1
        assert (cached == plain) == expected, f"beam search of {name} is another now"
    if name == "recurrent_gemma":
        assert with_cache < without - 1, "the text found with the cache is as likely now"
PYTHON
"$folder/venv/bin/python" "$folder/beams.py"
