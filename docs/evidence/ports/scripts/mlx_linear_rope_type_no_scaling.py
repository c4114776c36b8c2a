"""mlx and transformers compute other logits from the same checkpoint and tokens.

rope_parameters.rope_type: linear in the model, no scaling in the port.
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
    "dbrx": {
        "attn_config": {
            "_name_or_path": "",
            "architectures": None,
            "attn_pdrop": 0.0,
            "chunk_size_feed_forward": 0,
            "clip_qkv": 8,
            "dtype": "float32",
            "id2label": {
                "0": "LABEL_0",
                "1": "LABEL_1",
            },
            "is_encoder_decoder": False,
            "kv_n_heads": 2,
            "label2id": {
                "LABEL_0": 0,
                "LABEL_1": 1,
            },
            "model_type": "",
            "output_attentions": False,
            "output_hidden_states": False,
            "problem_type": None,
            "return_dict": True,
            "rope_theta": 10000.0,
        },
        "bos_token_id": 1,
        "d_model": 64,
        "eos_token_id": 2,
        "ffn_config": {
            "_name_or_path": "",
            "architectures": None,
            "chunk_size_feed_forward": 0,
            "dtype": "float32",
            "ffn_act_fn": {
                "name": "silu",
            },
            "ffn_hidden_size": 3584,
            "hidden_size": 64,
            "id2label": {
                "0": "LABEL_0",
                "1": "LABEL_1",
            },
            "is_encoder_decoder": False,
            "label2id": {
                "LABEL_0": 0,
                "LABEL_1": 1,
            },
            "model_type": "",
            "moe_jitter_eps": None,
            "moe_loss_weight": 0.01,
            "moe_normalize_expert_weights": 1.0,
            "moe_num_experts": 4,
            "moe_top_k": 1,
            "output_attentions": False,
            "output_hidden_states": False,
            "problem_type": None,
            "return_dict": True,
        },
        "max_seq_len": 64,
        "n_heads": 4,
        "n_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "rope_theta": 10000.0,
            "rope_type": "linear",
        },
        "vocab_size": 99,
    },
    "ernie4_5": {
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "rope_parameters": {
            "factor": 4.0,
            "rope_theta": 500000.0,
            "rope_type": "linear",
        },
        "vocab_size": 99,
    },
    "glm4": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "partial_rotary_factor": 0.5,
            "rope_theta": 10000.0,
            "rope_type": "linear",
        },
        "vocab_size": 99,
    },
    "glm4_moe": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
        "moe_intermediate_size": 64,
        "n_routed_experts": 4,
        "num_attention_heads": 4,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "rope_parameters": {
            "factor": 4.0,
            "partial_rotary_factor": 0.5,
            "rope_theta": 10000.0,
            "rope_type": "linear",
        },
        "vocab_size": 99,
    },
}
OLDER_KEYS = {
    "ernie4_5": {
        "rope_scaling": {
            "factor": 4.0,
            "rope_type": "linear",
            "type": "linear",
        },
        "rope_theta": 500000.0,
        "rotary_emb_base": 500000.0,
    },
    "glm4": {
        "partial_rotary_factor": 0.5,
        "rope_pct": 0.5,
        "rope_scaling": {
            "factor": 4.0,
            "rope_type": "linear",
            "type": "linear",
        },
        "rope_theta": 10000.0,
        "rotary_emb_base": 10000.0,
        "rotary_pct": 0.5,
    },
    "glm4_moe": {
        "head_dim": 16,
        "partial_rotary_factor": 0.5,
        "rope_pct": 0.5,
        "rope_scaling": {
            "factor": 4.0,
            "rope_type": "linear",
            "type": "linear",
        },
        "rope_theta": 10000.0,
        "rotary_emb_base": 10000.0,
        "rotary_pct": 0.5,
    },
}  # without which the engine does not load the checkpoint

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
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | OLDER_KEYS.get(name, {})))
        port, _ = load_model(Path(folder))
        actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
