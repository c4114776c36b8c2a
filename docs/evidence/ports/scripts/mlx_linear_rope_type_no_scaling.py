"""hunyuan_v1_dense, mlx-lm 0.32.2: rope_parameters.rope_type: linear in transformers, no scaling here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
rope = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
values = {"rope_parameters": rope, "intermediate_size": 128, "vocab_size": 99, "head_dim": 16, "num_attention_heads": 4}
values |= {"max_position_embeddings": 64, "hidden_size": 64, "num_key_value_heads": 2, "num_hidden_layers": 2}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("hunyuan_v1_dense", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 78))
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
