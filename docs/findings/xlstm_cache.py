"""xLSTM reads a text longer than `max_inference_chunksize` without a cache through states in bfloat16, in any dtype."""

import torch
from transformers import xLSTMConfig, xLSTMModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_heads": 4, "vocab_size": 99, "qk_dim_factor": 1.0}
model = xLSTMModel(xLSTMConfig(**sizes, max_inference_chunksize=4)).eval()
ids = torch.randint(99, (1, 8))
with torch.no_grad():
    whole, kept = (model(ids, use_cache=cache).last_hidden_state[0] for cache in (False, True))
    model.config.max_inference_chunksize = 8
    at_once = model(ids, use_cache=False).last_hidden_state[0]
print("with a cache, off by", round(float((kept - at_once).abs().max() / at_once.abs().max()), 6))
change = (whole - kept).abs().amax(-1) / kept.abs().max()
print("relative difference between one forward and its cache:", [round(x, 6) for x in change.tolist()])
