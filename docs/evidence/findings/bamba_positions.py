"""arch:bamba: cached_decoding (OP401), token-by-token decoding."""

from itertools import pairwise

import torch
from transformers import BambaConfig, BambaModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 224, "num_hidden_layers": 2}
sizes |= {"max_position_embeddings": 128, "attn_layer_indices": [1], "mamba_chunk_size": 4}
model = BambaModel(BambaConfig(**sizes)).eval()
ids = torch.tensor([[46, 12, 90, 59, 71, 37, 55]])
with torch.no_grad():
    past = None
    for a, b in pairwise(range(8)):
        out = model(input_ids=ids[:, a:b], use_cache=True, past_key_values=past)
        past = out.past_key_values
    actual = out.last_hidden_state[0, 0]
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 6]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
