"""glm4_moe_lite, mlx-lm 0.32.2: rope_parameters.rope_theta: 10000 in transformers, 150000 here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
values = {"rope_parameters": rope, "intermediate_size": 128, "max_position_embeddings": 16, "moe_intermediate_size": 64}
values |= {"mlp_layer_types": ["dense", "sparse"], "qk_nope_head_dim": 16, "kv_lora_rank": 32, "num_attention_heads": 4}
values |= {"hidden_size": 64, "v_head_dim": 16, "num_experts_per_tok": 2, "num_hidden_layers": 2, "n_routed_experts": 4}
values |= {"q_lora_rank": 32, "qk_head_dim": 24, "num_key_value_heads": 4, "qk_rope_head_dim": 8, "bos_token_id": 1}
values |= {"vocab_size": 99, "eos_token_id": 2, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("glm4_moe_lite", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 30))
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
