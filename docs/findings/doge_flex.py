"""Doge is not causal with FlexAttention: it drops the block mask when it computes its own mask from the values."""

import torch
from transformers import DogeConfig, DogeModel

config = DogeConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, intermediate_size=128, vocab_size=99)
ids = torch.tensor([[11, 12, 13, 14, 15, 16]])
other = torch.tensor([[11, 12, 13, 14, 15, 99 - 16]])
for attention in ("eager", "sdpa", "flex_attention"):
    torch.manual_seed(0)
    model = DogeModel._from_config(config, attn_implementation=attention).eval()
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        first, second = (model(x, use_cache=False).last_hidden_state[0, 0] for x in (ids, other))
    print(f"{attention}: the last token changes the first by", round(float((first - second).abs().max()), 6))
