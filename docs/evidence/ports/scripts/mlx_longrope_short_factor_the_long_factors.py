"""mlx and transformers compute other logits from the same checkpoint and tokens.

rope_parameters.short_factor: as stated in the model, the long factors in the port.
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
    "apertus": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "original_max_position_embeddings": 16,
            "rope_theta": 12000000.0,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35],
        },
        "vocab_size": 99,
    },
    "dots1": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "layer_types": ["full_attention", "full_attention"],
        "max_position_embeddings": 64,
        "moe_intermediate_size": 64,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_attention_heads": 4,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "original_max_position_embeddings": 16,
            "rope_theta": 10000.0,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35],
        },
        "sliding_window": 6,
        "vocab_size": 99,
    },
    "falcon_h1": {
        "hidden_size": 512,
        "intermediate_size": 1792,
        "mamba_chunk_size": 4,
        "mamba_d_head": 16,
        "mamba_d_ssm": 128,
        "mamba_d_state": 16,
        "mamba_n_heads": 8,
        "max_position_embeddings": 64,
        "num_hidden_layers": 2,
        "rope_parameters": {
            "factor": 4.0,
            "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "original_max_position_embeddings": 16,
            "rope_theta": 10000.0,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35],
        },
        "vocab_size": 99,
    },
    "granite": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "original_max_position_embeddings": 16,
            "rope_theta": 10000.0,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35],
        },
        "vocab_size": 99,
    },
}
OLDER_KEYS = {
    "apertus": {
        "head_dim": 16,
        "mlp_bias": False,
        "post_norm": False,
        "qk_norm": True,
        "rope_scaling": {
            "factor": 4.0,
            "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "original_max_position_embeddings": 16,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35],
            "type": "longrope",
        },
        "rope_theta": 12000000.0,
        "rotary_emb_base": 12000000.0,
    },
    "dots1": {
        "head_dim": 16,
        "rope_scaling": {
            "factor": 4.0,
            "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "original_max_position_embeddings": 16,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35],
            "type": "longrope",
        },
        "rope_theta": 10000.0,
        "rotary_emb_base": 10000.0,
    },
    "falcon_h1": {
        "head_dim": 16,
        "rope_scaling": {
            "factor": 4.0,
            "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "original_max_position_embeddings": 16,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35],
            "type": "longrope",
        },
        "rope_theta": 10000.0,
        "rotary_emb_base": 10000.0,
    },
    "granite": {
        "head_dim": 16,
        "rope_scaling": {
            "factor": 4.0,
            "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            "original_max_position_embeddings": 16,
            "rope_type": "longrope",
            "short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35],
            "type": "longrope",
        },
        "rope_theta": 10000.0,
        "rotary_emb_base": 10000.0,
    },
}  # without which the engine does not load the checkpoint

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
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | OLDER_KEYS.get(name, {})))
        port, _ = load_model(Path(folder))
        actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
