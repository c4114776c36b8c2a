"""xLSTM without a cache rounds the state to bfloat16 between chunks of `max_inference_chunksize` tokens."""

import torch
from transformers import xLSTMConfig, xLSTMModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_heads": 4, "vocab_size": 99, "qk_dim_factor": 1.0}
model = xLSTMModel(xLSTMConfig(**sizes, max_inference_chunksize=4)).eval()
ids = torch.randint(99, (1, 8))
with torch.no_grad():
    whole, cached = (model(ids, use_cache=cache).last_hidden_state[0] for cache in (False, True))
    model.config.max_inference_chunksize = 8
    at_once = model(ids, use_cache=False).last_hidden_state[0]
print("relative error with a cache:", round(float((cached - at_once).abs().max() / at_once.abs().max()), 6))
change = (whole - cached).abs().amax(-1) / cached.abs().max()
print("relative difference between one forward pass and its cache:", [round(x, 6) for x in change.tolist()])
