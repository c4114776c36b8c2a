"""qwen3, keras-hub 0.32.0: epsilon of k_norm, q_norm: 1e-06 in transformers, 1e-05 here."""

import keras_hub
import numpy as np
import torch
from keras import ops
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"intermediate_size": 128, "hidden_size": 64, "head_dim": 16, "num_attention_heads": 4, "num_hidden_layers": 2}
values |= {"layer_types": ["full_attention"] * 2, "max_position_embeddings": 70, "bos_token_id": 1, "eos_token_id": 2}
values |= {"vocab_size": 99, "num_key_value_heads": 2, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("qwen3", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 84))
model.save_pretrained("checkpoint")
port = keras_hub.models.CausalLM.from_preset("checkpoint", preprocessor=None, dtype="float32")
inputs = {"token_ids": tokens.numpy(), "padding_mask": np.ones(tokens.shape)}
actual = ops.convert_to_numpy(port(inputs))[0]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
