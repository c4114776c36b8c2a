"""gemma, mlx-lm 0.32.2: hidden_act: gelu_pytorch_tanh in transformers, gelu here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"max_position_embeddings": 128, "intermediate_size": 128, "hidden_size": 64, "vocab_size": 99, "head_dim": 16}
values |= {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "bos_token_id": 1}
values |= {"eos_token_id": 2}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 142))
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
