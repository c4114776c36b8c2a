"""Dynamic rope: past the stated length, a cache holds keys that were rotated by other frequencies."""

import torch
from transformers import AutoModel, FalconConfig, LlamaConfig

rope = {"rope_theta": 1e4, "rope_type": "dynamic", "factor": 4.0}
sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 50}
for config in (LlamaConfig, FalconConfig):
    torch.manual_seed(0)
    made = config(**sizes, rope_parameters=rope, max_position_embeddings=8)
    model = AutoModel.from_config(made).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    ids = torch.randint(0, 50, (1, 9))
    with torch.no_grad():
        past = model(ids[:, :8], use_cache=True).past_key_values
        last = model(ids[:, 8:], past_key_values=past, use_cache=True).last_hidden_state[0, -1]
        whole = model(ids, use_cache=False).last_hidden_state[0, -1]
    change = round(float((whole - last).abs().max() / whole.abs().max()), 6)
    print(f"{made.model_type}: relative difference between one forward pass and its cache: [{change}]")
