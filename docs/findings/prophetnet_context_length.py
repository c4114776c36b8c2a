"""ProphetNet clamps positions to its table, so all tokens past the end share one position."""

import torch
from transformers import ProphetNetConfig, ProphetNetEncoder

torch.manual_seed(0)
sizes = {"num_encoder_layers": 2, "hidden_size": 64, "num_encoder_attention_heads": 4, "encoder_ffn_dim": 128}
model = ProphetNetEncoder(ProphetNetConfig(**sizes, vocab_size=99, max_position_embeddings=16)).eval()
ids = torch.randint(3, 99, (1, 24))
for pair in ([9, 10], [19, 20]):
    other = ids.clone()
    other[0, pair] = ids[0, pair[::-1]]
    with torch.no_grad():
        first, second = (model(x).last_hidden_state[0, 0] for x in (ids, other))
    print(f"swapping tokens {pair} changes the first by", round(float((first - second).abs().max()), 6))
