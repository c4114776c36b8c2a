"""arch:canine: padding (OP202), replace the pad tokens."""

import torch
from transformers import CanineConfig, CanineModel

torch.manual_seed(0)
sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
sizes |= {"max_position_embeddings": 128, "local_transformer_stride": 4}
model = CanineModel(CanineConfig(**sizes)).eval()
ids = torch.tensor([[92, 95, 89, 74, 53, 35, 15]])
mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1]])
ids2 = torch.tensor([[52, 95, 89, 74, 53, 35, 15]])
with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=mask).last_hidden_state[0, 5]
    actual = model(input_ids=ids2, attention_mask=mask).last_hidden_state[0, 5]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
