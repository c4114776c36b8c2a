"""GIT without an image: with a cache, the attention mask is extended by image tokens that do not exist."""

import torch
from transformers import GitConfig, GitModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
vision = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "image_size": 32, "patch_size": 16}
model = GitModel(GitConfig(vision_config=vision, vocab_size=99, **sizes)).eval()
ids, mask = torch.randint(1, 99, (1, 6)), torch.tensor([[0, 0, 1, 1, 1, 1]])
with torch.no_grad():
    whole = model(ids, attention_mask=mask, use_cache=False).last_hidden_state[0, -1]
    past = model(ids[:, :5], attention_mask=mask[:, :5], use_cache=True).past_key_values
    last = model(ids[:, 5:], attention_mask=mask, past_key_values=past).last_hidden_state[0, -1]
change = round(float((whole - last).abs().max() / whole.abs().max()), 6)
print(f"relative difference between one forward pass and its cache: [{change}]")
