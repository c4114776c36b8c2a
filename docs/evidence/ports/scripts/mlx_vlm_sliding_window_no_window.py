"""mistral, mlx-vlm 0.7.10: sliding_window: 6 in transformers, no window here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_vlm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"intermediate_size": 128, "hidden_size": 64, "head_dim": 16, "num_attention_heads": 4, "num_hidden_layers": 2}
values |= {"max_position_embeddings": 70, "num_key_value_heads": 2, "sliding_window": 6, "pad_token_id": 0}
values |= {"vocab_size": 99}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("mistral", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 84))
model.save_pretrained("checkpoint")
mx.set_default_device(mx.cpu)
port = load_model(Path("checkpoint")).language_model
actual = np.array(port(mx.array(tokens.numpy())).logits.astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
