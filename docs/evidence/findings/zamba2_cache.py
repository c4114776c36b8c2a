"""arch:zamba2: cached_decoding (OP401), token-by-token decoding."""

from itertools import pairwise

import torch
from transformers import Zamba2Config, Zamba2Model

torch.manual_seed(0)
sizes = {"vocab_size": 99, "max_position_embeddings": 128, "hidden_size": 64, "num_hidden_layers": 2}
sizes |= {"layers_block_type": ["linear_attention", "hybrid"], "chunk_size": 4, "intermediate_size": 128}
sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "attention_head_dim": 16}
model = Zamba2Model(Zamba2Config(**sizes)).eval()
for parameter in model.parameters():
    parameter.data += 0.3 * torch.randn_like(parameter)
ids = torch.tensor([[89, 88, 22, 24, 72, 38, 63, 46, 12]])
with torch.no_grad():
    past = None
    for a, b in pairwise(range(10)):
        out = model(input_ids=ids[:, a:b], use_cache=True, past_key_values=past)
        past = out.past_key_values
    actual = out.last_hidden_state[0, 0]
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 8]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
