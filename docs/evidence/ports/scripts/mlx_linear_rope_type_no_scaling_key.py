"""mlx and transformers compute other logits from the same checkpoint and tokens.

rope_parameters.rope_type: linear in the model, no scaling in the port.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM

CONFIGS = {
    "afmoe": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "layer_types": [
            "sliding_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
        ],
        "max_position_embeddings": 64,
        "moe_intermediate_size": 64,
        "num_attention_heads": 4,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 4,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "rope_theta": 10000.0,
            "rope_type": "linear",
        },
        "sliding_window": 6,
        "vocab_size": 99,
    },
    "deepseek_v3": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 8,
        "hidden_size": 64,
        "intermediate_size": 128,
        "kv_lora_rank": 32,
        "max_position_embeddings": 64,
        "moe_intermediate_size": 64,
        "n_group": 1,
        "n_routed_experts": 4,
        "num_attention_heads": 4,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 2,
        "num_key_value_heads": 4,
        "pad_token_id": 0,
        "q_lora_rank": 32,
        "qk_head_dim": 24,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "rope_parameters": {
            "factor": 4.0,
            "rope_theta": 10000.0,
            "rope_type": "linear",
        },
        "topk_group": 1,
        "v_head_dim": 16,
        "vocab_size": 99,
    },
    "deepseek_v32": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 8,
        "hidden_size": 64,
        "index_topk": 4,
        "intermediate_size": 128,
        "kv_lora_rank": 32,
        "layer_types": ["indexed_attention", "indexed_attention"],
        "max_position_embeddings": 64,
        "mlp_layer_types": ["dense", "dense"],
        "moe_intermediate_size": 64,
        "n_group": 1,
        "n_routed_experts": 4,
        "num_attention_heads": 4,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 2,
        "num_key_value_heads": 4,
        "pad_token_id": 0,
        "q_lora_rank": 32,
        "qk_head_dim": 24,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "rope_parameters": {
            "factor": 4.0,
            "rope_theta": 10000.0,
            "rope_type": "linear",
        },
        "topk_group": 1,
        "v_head_dim": 16,
        "vocab_size": 99,
    },
    "internlm3": {
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "rope_theta": 10000.0,
            "rope_type": "linear",
        },
        "vocab_size": 99,
    },
}

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 78))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        port, _ = load_model(Path(folder))
        actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
