"""phi, mlx-lm 0.32.2: rope_parameters.partial_rotary_factor: 0.5 in transformers, 0.4, its own default here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"max_position_embeddings": 128, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}
values |= {"hidden_size": 64, "vocab_size": 99, "num_hidden_layers": 2, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("phi", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 142))
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
