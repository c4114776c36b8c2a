"""gpt_neox, mlx-lm 0.32.2: hidden_act: gelu in transformers, gelu_pytorch_tanh here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"intermediate_size": 256, "hidden_size": 64, "num_attention_heads": 4, "bos_token_id": 1, "pad_token_id": 0}
values |= {"max_position_embeddings": 128, "vocab_size": 99, "num_hidden_layers": 2}
older = {"rope_theta": 10000.0, "partial_rotary_factor": 0.25, "rope_scaling": None, "rotary_pct": 0.25, "head_dim": 16}
older |= {"rotary_emb_base": 10000.0, "rope_pct": 0.25}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt_neox", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 142))
vars(model.config).update(older)  # as transformers wrote it before version 5
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
