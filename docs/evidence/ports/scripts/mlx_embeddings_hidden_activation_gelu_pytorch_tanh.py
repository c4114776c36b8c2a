"""modernbert, mlx-embeddings 0.1.0: hidden_activation: gelu in transformers, gelu_pytorch_tanh here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_embeddings.utils import load_model
from transformers import AutoConfig, AutoModel  # 5.23.0

torch.manual_seed(0)
values = {"intermediate_size": 128, "hidden_size": 64, "vocab_size": 99, "num_attention_heads": 4, "local_attention": 4}
values |= {"layer_types": ["full_attention", "sliding_attention", "sliding_attention"], "max_position_embeddings": 70}
values |= {"num_hidden_layers": 3, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
model = AutoModel.from_config(AutoConfig.for_model("modernbert", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 84))
model.save_pretrained("checkpoint")
mx.set_default_device(mx.cpu)
port = load_model(Path("checkpoint"), path_to_repo="checkpoint").model  # without its pooling
output = port(mx.array(tokens.numpy()), attention_mask=mx.ones(tokens.shape), return_dict=True)
actual = np.array(output["last_hidden_state"])[0]
print(abs(actual - model(tokens).last_hidden_state[0].detach().numpy()).max(-1))  # by token
