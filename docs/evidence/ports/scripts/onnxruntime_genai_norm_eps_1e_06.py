"""onnxruntime-genai and transformers compute other logits from the same checkpoint and tokens.

norm_eps: 1e-05 in the model, 1e-06 in the port.
"""

import subprocess
import sys
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime_genai as og
import torch
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

CONFIGS = {
    "nemotron": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 32,
        "hidden_size": 128,
        "intermediate_size": 128,
        "max_position_embeddings": 70,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "vocab_size": 99,
    },
}

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 12))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        words = Tokenizer(models.WordLevel({f"t{k}": k for k in range(config.vocab_size)}, unk_token="t0"))
        special = {"unk_token": "t0", "pad_token": "t0", "bos_token": "t1", "eos_token": "t2"}
        PreTrainedTokenizerFast(tokenizer_object=words, **special).save_pretrained(folder)
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", folder]
        command += ["-o", f"{folder}/port", "-c", folder, "-p", "fp32", "-e", "cpu"]
        subprocess.run([*command, "--extra_options", "hf_token=false"], check=True, capture_output=True)
        port = og.Model(f"{folder}/port")
        generator = og.Generator(port, og.GeneratorParams(port))
        generator.append_tokens(tokens[0].numpy().astype(np.int32))
        actual = np.array(generator.get_output("logits"))[0]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
