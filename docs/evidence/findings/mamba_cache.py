"""arch:mamba: chunked_prefill (OP402), in chunks of 2, 2, 3 tokens."""

from itertools import pairwise

import torch
from transformers import MambaConfig, MambaModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2}
model = MambaModel(MambaConfig(**sizes)).eval()
ids = torch.tensor([[89, 88, 22, 24, 72, 38, 63]])
with torch.no_grad():
    past = None
    for a, b in pairwise([0, 2, 4, 7]):
        out = model(input_ids=ids[:, a:b], use_cache=True, cache_params=past)
        past = out.cache_params
    actual = out.last_hidden_state[0, 2]
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 6]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
