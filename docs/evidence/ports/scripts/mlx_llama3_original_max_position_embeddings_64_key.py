"""glm4_moe_lite, mlx-lm 0.32.2: rope_parameters.original_max_position_embeddings: 16 in transformers, 64 here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
rope = {"rope_type": "llama3", "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 16}
rope |= {"rope_theta": 10000.0, "factor": 4.0}
values = {"rope_parameters": rope, "intermediate_size": 128, "max_position_embeddings": 64, "moe_intermediate_size": 64}
values |= {"kv_lora_rank": 32, "hidden_size": 64, "q_lora_rank": 32, "num_attention_heads": 4, "num_experts_per_tok": 2}
values |= {"qk_nope_head_dim": 16, "v_head_dim": 16, "vocab_size": 99, "num_key_value_heads": 4, "num_hidden_layers": 2}
values |= {"n_routed_experts": 4, "qk_rope_head_dim": 8, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("glm4_moe_lite", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 30))
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
