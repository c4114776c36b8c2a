"""MiniMax: `reorder_cache` does not reorder the states of the linear attention layers."""

import torch
from transformers import MiniMaxConfig, MiniMaxModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
layers = ["linear_attention", "full_attention"]
config = MiniMaxConfig(**sizes, vocab_size=99, intermediate_size=128, head_dim=16, layer_types=layers)
model = MiniMaxModel(config).eval()
ids, order = torch.randint(1, 99, (2, 6)), torch.tensor([1, 0])
with torch.no_grad():
    whole = model(ids[order], use_cache=False).last_hidden_state[:, -1]
    past = model(ids[:, :5], use_cache=True).past_key_values
    past.reorder_cache(order)
    last = model(ids[order, 5:], past_key_values=past).last_hidden_state[:, -1]
change = (whole - last).abs().amax(-1) / whole.abs().max()
print("relative difference between one forward pass and its cache:", [round(x, 6) for x in change.tolist()])
