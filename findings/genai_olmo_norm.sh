#!/usr/bin/env bash
# onnxruntime-genai's builder writes OLMo's layer norms as root-mean-square norms: the mean is not subtracted.
#
# Guess:   OLMo's norm, a LayerNorm without weights and epsilon 1e-5, becomes LayerNormalization with weights of ones.
# True:    the file has SimplifiedLayerNormalization with epsilon 1e-6, the norm of Llama. It builds and generates without
#          a word, and its logits are those of the checkpoint with that norm, far from those of OLMo.
# Package: onnxruntime-genai 0.18.0, onnxruntime 1.32.0, transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  onnxruntime_genai/models/builders/olmo.py: OLMoModel (the norm's weights are ones, its kind stays the base's)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet onnxruntime-genai==0.18.0 onnxruntime==1.32.0 transformers==5.23.0 onnx==1.23.2 onnx-ir==1.1.0
TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime_genai as genai
import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, OlmoConfig, PreTrainedTokenizerFast

print(*(f"{name} {version(name)}" for name in ("onnxruntime-genai", "onnxruntime", "transformers")), sep=", ")
torch.manual_seed(0)
sizes = {"hidden_size": 128, "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 99}
config = OlmoConfig(**sizes, bos_token_id=1, eos_token_id=2, pad_token_id=0, max_position_embeddings=70)
model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, 99, (1, 20))
with TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(99)}, unk_token="t0"))
    special = {"unk_token": "t0", "pad_token": "t0", "bos_token": "t1", "eos_token": "t2"}
    PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", folder, "-o", f"{folder}/port", "-c", folder]
    subprocess.run([*command, "-p", "fp32", "-e", "cpu", "--extra_options", "hf_token=false"], check=True, capture_output=True)
    graph = onnx.load(f"{folder}/port/model.onnx", load_external_data=False).graph
    norms = Counter(node.op_type for node in graph.node if "LayerNorm" in node.op_type)
    epsilons = {round(a.f, 9) for node in graph.node for a in node.attribute if a.name == "epsilon"}
    port = genai.Model(f"{folder}/port")
    generator = genai.Generator(port, genai.GeneratorParams(port))
    generator.append_tokens(tokens[0].numpy().astype(np.int32))
    actual = np.array(generator.get_output("logits"))[0]


def apart() -> float:
    with torch.no_grad():
        expected = model(tokens).logits[0].numpy()
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


as_it_is = apart()
for layer in (*model.model.layers, model.model):
    for name in ("input_layernorm", "post_attention_layernorm", "norm"):
        if hasattr(layer, name):
            getattr(layer, name).forward = lambda x: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
as_llama = apart()
print(f"norms in the file: {dict(norms)}, epsilon {sorted(epsilons)}")
print(f"logits differ from those of OLMo by {as_it_is:.2g}, with the norm of Llama by {as_llama:.1e}")
assert as_it_is > 0.05 and as_llama < 1e-4, "the norm of OLMo is written in another way now"
assert not any(kind.endswith("LayerNormalization") and "Simplified" not in kind for kind in norms), "layer norms are written now"
PYTHON
