"""mlx and transformers compute other logits from the same checkpoint and tokens.

sliding_window: 6 in the model, no window in the port.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM

CONFIGS = {
    "gemma2": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "layer_types": ["sliding_attention", "full_attention"],
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "query_pre_attn_scalar": 16,
        "sliding_window": 6,
        "vocab_size": 99,
    },
    "ministral3": {
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "factor": 16.0,
            "llama_4_scaling_beta": 0.1,
            "max_position_embeddings": 262144,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 16,
            "rope_theta": 1000000.0,
            "rope_type": "yarn",
            "type": "yarn",
        },
        "sliding_window": 6,
        "vocab_size": 99,
    },
    "mistral": {
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "sliding_window": 6,
        "vocab_size": 99,
    },
    "mixtral": {
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "num_local_experts": 4,
        "pad_token_id": 0,
        "sliding_window": 6,
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
