"""arch:layoutlmv3: padding (OP202), replace the pad tokens."""

import torch
from transformers import LayoutLMv3Config, LayoutLMv3Model

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 384}
sizes |= {"max_position_embeddings": 128, "coordinate_size": 16, "shape_size": 16, "rel_2d_pos_bins": 8}
sizes |= {"input_size": 48}
model = LayoutLMv3Model(LayoutLMv3Config(**sizes)).eval()
ids = torch.tensor([[92, 95]])
mask = torch.arange(2).repeat(1, 1)
ids2 = torch.tensor([[1, 95]])
with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=mask).last_hidden_state[0, 1]
    actual = model(input_ids=ids2, attention_mask=mask).last_hidden_state[0, 1]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
