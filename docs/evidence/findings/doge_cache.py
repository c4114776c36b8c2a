"""arch:doge: cached_decoding (OP401), token-by-token decoding."""

import torch
from transformers import DogeConfig, DogeModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"max_position_embeddings": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "keep_window_size": 4}
sizes |= {"num_experts": 4, "num_experts_per_tok": 2}
model = DogeModel(DogeConfig(**sizes)).eval()
ids = torch.tensor([
    [57, 44, 92, 96, 14, 80, 71, 87, 82, 91, 80, 54, 78, 9, 20, 21, 74, 11, 76, 26, 63, 10, 47, 95, 35, 71, 52, 78,
     19, 24, 54, 95, 66, 64, 72, 28, 9, 29, 31, 23, 50, 80, 38, 47, 13, 37, 68, 73, 78, 84, 22, 12, 11, 44, 14, 18,
     13, 44, 95, 43, 47, 80, 90, 24, 64, 43, 96, 95, 61, 49, 76, 76, 40, 14, 68, 14, 75, 92, 83, 64, 16, 38, 91, 84,
     96, 66, 44, 21, 54, 32, 88, 9, 52, 32, 64, 28, 26, 8, 55, 39, 13, 62, 93, 28, 93, 45, 37, 37, 27, 78, 25, 19,
     51, 31, 90, 60, 91, 24, 51, 84, 26, 69, 24, 71, 98, 15, 21, 85],
])  # fmt: skip
with torch.no_grad():
    actual = model(input_ids=ids[:, :122], use_cache=True).last_hidden_state[0, 63]
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 63]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
