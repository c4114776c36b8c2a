"""arch:jamba: chunked_prefill (OP402), in chunks of 1, 6 tokens."""

from itertools import pairwise

import torch
from transformers import JambaConfig, JambaModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "num_experts": 4}
sizes |= {"attn_layer_period": 2, "attn_layer_offset": 1}
model = JambaModel(JambaConfig(**sizes)).eval()
ids = torch.tensor([[89, 88, 22, 24, 72, 38, 63]])
with torch.no_grad():
    past = None
    for a, b in pairwise([0, 1, 7]):
        out = model(input_ids=ids[:, a:b], use_cache=True, past_key_values=past)
        past = out.past_key_values
    actual = out.last_hidden_state[0, 0]
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 1]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
