#!/usr/bin/env bash
# Documents that DataCollatorWithFlattening packs are kept apart by Llama and read together by OPT and BLOOM, without a word.
#
# Guess:   transformers 5 finds packed documents in position ids that restart, and masks them apart in every decoder, or a
#          model that cannot do so refuses the ids.
# True:    the logits of a document in Llama are those of the document alone. OPT takes the same ids and attends across the
#          documents; BLOOM has no such argument, and its forward takes it as an ignored keyword.
# Package: transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  transformers/masking_utils.py: find_packed_sequence_indices, called by models that pass position_ids on
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet transformers==5.23.0
TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, DataCollatorWithFlattening

print("transformers", transformers.__version__, "torch", torch.__version__)
torch.manual_seed(0)
sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 30, "pad_token_id": 0}
more = {"llama": {"intermediate_size": 32}, "opt": {"ffn_dim": 32, "word_embed_proj_dim": 32}, "bloom": {}}
samples = [{"input_ids": torch.randint(2, 30, (n,)).tolist()} for n in (6, 5)]
apart = {}
for name, own in more.items():
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **sizes, **own)).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape)
    batch = DataCollatorWithFlattening(return_tensors="pt")(samples)
    batch.pop("labels")
    with torch.no_grad():
        packed, alone = model(**batch, use_cache=False).logits[:, 6:], model(torch.tensor([samples[1]["input_ids"]])).logits
    apart[name] = float((packed - alone).abs().max())
    print(f"{name}: logits of the second document, packed and alone, differ by up to {apart[name]:.1e}")
assert apart["llama"] < 1e-5, "Llama does not keep the documents apart"
assert min(apart["opt"], apart["bloom"]) > 1e-2, "OPT or BLOOM keeps the documents apart now"
PYTHON
