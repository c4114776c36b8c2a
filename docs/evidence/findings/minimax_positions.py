"""arch:minimax?layer_types=["linear_attention","full_attention"]: cached_decoding (OP401), token-by-token decoding."""

from itertools import pairwise

import torch
from transformers import MiniMaxConfig, MiniMaxModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128}
sizes |= {"num_local_experts": 4, "layer_types": ["linear_attention", "full_attention"], "block_size": 4}
model = MiniMaxModel(MiniMaxConfig(**sizes)).eval()
for parameter in model.parameters():
    parameter.data += 0.1 * torch.randn_like(parameter)
ids = torch.tensor([[46, 12, 90, 59, 71, 37, 55]])
with torch.no_grad():
    past = None
    for a, b in pairwise(range(7)):
        out = model(input_ids=ids[:, :6][:, a:b], use_cache=True, past_key_values=past)
        past = out.past_key_values
    actual = out.last_hidden_state[0, 0]
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 5]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
