"""arch:rwkv: padding (OP202), replace the pad tokens."""

import torch
from transformers import RwkvConfig, RwkvModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "context_length": 128, "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128}
model = RwkvModel(RwkvConfig(**sizes)).eval()
ids = torch.tensor([[92, 95]])
mask = torch.arange(2).repeat(1, 1)
ids2 = torch.tensor([[52, 95]])
with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[0, 1]
    actual = model(input_ids=ids2, attention_mask=mask, use_cache=False).last_hidden_state[0, 1]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
