"""Moshi: the cache applies the sliding window, but the attention mask without a cache does not."""

import torch
from transformers import MoshiConfig, MoshiModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "ffn_dim": 128, "vocab_size": 99}
model = MoshiModel(MoshiConfig(**sizes, sliding_window=4)).eval()
ids = torch.randint(99, (1, 8))
with torch.no_grad():
    whole = model(ids, use_cache=False).last_hidden_state[0]
    past, steps = None, []
    for token in ids[0]:
        output = model(token.view(1, 1), past_key_values=past, use_cache=True)
        past = output.past_key_values
        steps.append(output.last_hidden_state[0, 0])
change = (whole - torch.stack(steps)).abs().amax(-1) / whole.abs().max()
print("relative difference between one forward pass and its cache:", [round(x, 6) for x in change.tolist()])
