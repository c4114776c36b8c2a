"""mlx and transformers compute other logits from the same checkpoint and tokens.

rope_parameters.partial_rotary_factor: 0.5 in the model, 0.4, its own default in the port.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM

CONFIGS = {
    "phi": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 128,
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
    tokens = torch.randint(3, config.vocab_size, (1, 142))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        port, _ = load_model(Path(folder))
        actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
