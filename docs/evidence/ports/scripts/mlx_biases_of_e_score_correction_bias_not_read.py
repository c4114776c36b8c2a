"""ernie4_5_moe, mlx-lm 0.32.2: biases of e_score_correction_bias: in the checkpoint in transformers, not read here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"max_position_embeddings": 128, "intermediate_size": 128, "moe_intermediate_size": 64, "num_hidden_layers": 2}
values |= {"hidden_size": 64, "moe_layer_end_index": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "moe_k": 2}
values |= {"vocab_size": 99, "moe_num_experts": 4}
older = {"rotary_emb_base": 500000.0, "rope_theta": 500000.0, "rope_scaling": None, "head_dim": 16}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("ernie4_5_moe", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 142))
vars(model.config).update(older)  # as transformers wrote it before version 5
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
actual = np.array(port(mx.array(tokens.numpy())).astype(mx.float32))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
