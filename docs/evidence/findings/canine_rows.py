"""arch:canine: batch_composition (OP407), padded on the right in a batch with a longer row."""

import torch
from transformers import CanineConfig, CanineModel

torch.manual_seed(0)
sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
sizes |= {"max_position_embeddings": 128, "local_transformer_stride": 4}
model = CanineModel(CanineConfig(**sizes)).eval()
ids = torch.tensor([[89, 88, 22, 24, 72, 38, 63, 0, 0, 0]])
positions = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 6, 6, 6]])
mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1, 0, 0, 0]])
with torch.no_grad():
    expected = model(input_ids=ids[:, :7]).last_hidden_state[0, 3]
    actual = model(input_ids=ids, position_ids=positions, attention_mask=mask).last_hidden_state[0, 3]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
