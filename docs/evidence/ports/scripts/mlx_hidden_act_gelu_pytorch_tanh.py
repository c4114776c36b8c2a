"""mlx and transformers compute other logits from the same checkpoint and tokens.

hidden_act: gelu in the model, gelu_pytorch_tanh in the port.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM

CONFIGS = {
    "gpt_neox": {
        "bos_token_id": 1,
        "hidden_size": 64,
        "intermediate_size": 256,
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "pad_token_id": 0,
        "vocab_size": 99,
    },
}
OLDER_KEYS = {
    "gpt_neox": {
        "head_dim": 16,
        "partial_rotary_factor": 0.25,
        "rope_pct": 0.25,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "rotary_emb_base": 10000.0,
        "rotary_pct": 0.25,
    },
}  # without which the engine does not load the checkpoint

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 142))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | OLDER_KEYS.get(name, {})))
        port, _ = load_model(Path(folder))
        actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
