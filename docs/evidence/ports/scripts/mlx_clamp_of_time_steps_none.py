"""nemotron_h, mlx-lm 0.32.2: clamp of time steps: 0.001 to inf in transformers, none here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"max_position_embeddings": 128, "mamba_head_dim": 16, "ssm_state_size": 16, "hidden_size": 64, "head_dim": 16}
values |= {"intermediate_size": 128, "moe_shared_expert_intermediate_size": 64, "vocab_size": 99, "n_routed_experts": 4}
values |= {"moe_intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 6}
values |= {"chunk_size": 4}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("nemotron_h", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 142))
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
