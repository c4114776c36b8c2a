"""arch:minimax: cache_editing (OP403), the rows reordered."""

import copy
from itertools import pairwise

import torch
from transformers import MiniMaxConfig, MiniMaxModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 128}
sizes |= {"num_local_experts": 4, "block_size": 4}
model = MiniMaxModel(MiniMaxConfig(**sizes)).eval()
ids = torch.tensor([[46, 12, 90, 59, 71, 37], [89, 88, 22, 24, 72, 38]])
with torch.no_grad():
    out = model(input_ids=ids[[1, 0], :5], use_cache=True)
    past = out.past_key_values
    past = copy.deepcopy(past)
    past.reorder_cache(torch.tensor([1, 0]))
    actual = model(input_ids=ids[:, 5:], use_cache=True, past_key_values=past).last_hidden_state[1, 0]
    past2 = None
    for a, b in pairwise([0, 5, 6]):
        out = model(input_ids=ids[:, a:b], use_cache=True, past_key_values=past2)
        past2 = out.past_key_values
    expected = out.last_hidden_state[1, 0]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
