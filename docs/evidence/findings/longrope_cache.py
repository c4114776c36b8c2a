"""LongRoPE: past the original length, a cache holds keys that were rotated with the short factors."""

import torch
from transformers import AutoModel, LlamaConfig, MistralConfig

rope = {"rope_theta": 1e4, "rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 8}
rope |= {"short_factor": [1.0] * 4, "long_factor": [1.0, 2.0, 3.0, 4.0]}
sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2}
sizes |= {"vocab_size": 50, "max_position_embeddings": 32, "rope_parameters": rope, "pad_token_id": 0}
for config in (LlamaConfig, MistralConfig):
    torch.manual_seed(0)
    made = config(**sizes)
    model = AutoModel.from_config(made).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    ids = torch.randint(1, 50, (1, 9))
    with torch.no_grad():
        past = model(ids[:, :8], use_cache=True).past_key_values
        last = model(ids[:, 8:], past_key_values=past, use_cache=True).last_hidden_state[0, -1]
        whole = model(ids, use_cache=False).last_hidden_state[0, -1]
    change = round(float((whole - last).abs().max() / whole.abs().max()), 6)
    print(f"{made.model_type}: relative difference between one forward pass and its cache: [{change}]")
