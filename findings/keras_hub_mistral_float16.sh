#!/usr/bin/env bash
# KerasHub reads a Mistral checkpoint through float16: a float32 model keeps 11 bits of each weight, small weights become 0.
#
# Guess:   from_preset(folder, dtype="float32") copies the float32 numbers of model.safetensors, as it does for Llama.
# True:    the converter of Mistral casts each weight to float16 on the way. The model says float32; its weights differ from
#          the file by up to 6e-4 of their size here, a bfloat16 weight below 3e-8 is 0, and one above 65,504 is infinite. The
#          same arrays saved as a Llama checkpoint arrive bit for bit.
# Package: keras-hub 0.32.0, keras 3.15.1, torch 2.13.0 (CPU), safetensors 0.8.0
# Source:  keras_hub/src/utils/transformers/convert_mistral.py: convert_weights (astype(np.float16) in every hook)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet keras-hub==0.32.0 keras==3.15.1 safetensors==0.8.0
KERAS_BACKEND=torch KERAS_HOME="$folder/keras" CUDA_VISIBLE_DEVICES= "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import json
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import keras_hub
import numpy as np
from safetensors.numpy import save_file

print(*(f"{name} {version(name)}" for name in ("keras-hub", "keras", "torch", "safetensors")), sep=", ")
WIDTH, HIDDEN, HEADS, WORDS = 32, 64, 4, 50
numbers = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return numbers.normal(0, 0.02, shape).astype(np.float32)


layer = {f"self_attn.{name}_proj": drawn(WIDTH, WIDTH) for name in "qkvo"}
layer |= {"mlp.gate_proj": drawn(HIDDEN, WIDTH), "mlp.up_proj": drawn(HIDDEN, WIDTH), "mlp.down_proj": drawn(WIDTH, HIDDEN)}
layer |= {"input_layernorm": np.ones(WIDTH, np.float32), "post_attention_layernorm": np.ones(WIDTH, np.float32)}
arrays = {f"model.layers.0.{name}.weight": array for name, array in layer.items()}
arrays |= {"model.embed_tokens.weight": drawn(WORDS, WIDTH), "model.norm.weight": np.ones(WIDTH, np.float32)}
arrays["lm_head.weight"] = drawn(WORDS, WIDTH)
arrays["model.layers.0.self_attn.q_proj.weight"][0, :2] = 2e-8, 1e5
config = {"vocab_size": WORDS, "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": 1, "rope_theta": 1e4}
config |= {"num_attention_heads": HEADS, "num_key_value_heads": HEADS, "rms_norm_eps": 1e-5, "sliding_window": 16}
config |= {"tie_word_embeddings": False, "max_position_embeddings": 64, "torch_dtype": "float32", "head_dim": WIDTH // HEADS}
lost = {}
for name in ("llama", "mistral"):
    with TemporaryDirectory() as folder:
        class_name = f"{name.capitalize()}ForCausalLM"
        Path(folder, "config.json").write_text(json.dumps(config | {"model_type": name, "architectures": [class_name]}))
        save_file(arrays, f"{folder}/model.safetensors", metadata={"format": "pt"})
        backbone = keras_hub.models.Backbone.from_preset(folder, dtype="float32")
    query = backbone.transformer_layers[0]._self_attention_layer._query_dense.kernel
    found = query.value.detach().numpy().reshape(WIDTH, WIDTH).T
    given = arrays["model.layers.0.self_attn.q_proj.weight"]
    lost[name] = found != given
    apart = np.abs(found - given)[1:] / np.abs(given)[1:]
    print(f"{name}: dtype {query.dtype}, {lost[name].mean():.0%} of the query weights differ from the file, in rows 1 to {WIDTH - 1}")
    print(f"  by at most {apart.max():.1e} of their size; {given[0, 0]:.0e} in the file is {found[0, 0]:.0e}, {given[0, 1]:.0e} is {found[0, 1]}")
assert not lost["llama"].any(), "the Llama converter changes numbers too"
assert lost["mistral"].mean() > 0.9, "the Mistral converter keeps float32 now"
PYTHON
