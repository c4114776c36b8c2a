"""qwen3, mlx-lm 0.32.2: rope_parameters.short_factor: as stated in transformers, the long factors here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
rope = {"long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], "factor": 4.0, "original_max_position_embeddings": 16}
rope |= {"short_factor": [1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35], "rope_type": "longrope", "rope_theta": 10000.0}
values = {"rope_parameters": rope, "layer_types": ["full_attention"] * 2, "max_position_embeddings": 64, "head_dim": 16}
values |= {"intermediate_size": 128, "hidden_size": 64, "num_attention_heads": 4, "bos_token_id": 1, "eos_token_id": 2}
values |= {"vocab_size": 99, "num_key_value_heads": 2, "num_hidden_layers": 2, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("qwen3", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 12))
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
