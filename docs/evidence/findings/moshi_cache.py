"""arch:moshi: attention_pattern (OP205), a token outside the attention pattern replaced."""

import torch
from transformers import MoshiConfig, MoshiModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "max_position_embeddings": 128}
sizes |= {"sliding_window": 4, "ffn_dim": 352}
model = MoshiModel(MoshiConfig(**sizes)).eval()
ids = torch.tensor([[89, 88, 22, 24, 72, 38, 63, 46, 12, 90, 59]])
ids2 = torch.tensor([[92, 88, 22, 24, 72, 38, 63, 46, 12, 90, 59]])
with torch.no_grad():
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 9]
    actual = model(input_ids=ids2, use_cache=False).last_hidden_state[0, 9]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
