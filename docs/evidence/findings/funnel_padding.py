"""arch:funnel: padding (OP202), replace the pad tokens."""

import torch
from transformers import FunnelConfig, FunnelModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "d_model": 64, "n_head": 4}
model = FunnelModel(FunnelConfig(**sizes)).eval()
ids = torch.tensor([[92, 95, 89, 74, 53, 35, 15]])
mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1]])
ids2 = torch.tensor([[52, 95, 89, 74, 53, 35, 15]])
with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=mask).last_hidden_state[0, 4]
    actual = model(input_ids=ids2, attention_mask=mask).last_hidden_state[0, 4]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
