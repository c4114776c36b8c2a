"""arch:yoso: padding (OP202), replace the pad tokens."""

import torch
from transformers import YosoConfig, YosoModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
sizes |= {"intermediate_size": 128, "max_position_embeddings": 128}
model = YosoModel(YosoConfig(**sizes)).eval()
ids = torch.tensor([[62, 85, 95, 61, 21, 69, 97]])
mask = torch.tensor([[1, 1, 1, 1, 1, 0, 0]])
ids2 = torch.tensor([[62, 85, 95, 61, 21, 35, 82]])
with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=mask).last_hidden_state[0, 2]
    actual = model(input_ids=ids2, attention_mask=mask).last_hidden_state[0, 2]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
