"""arch:clip_text_model: padding (OP202), replace the pad tokens."""

import torch
from transformers import CLIPTextConfig, CLIPTextModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"num_attention_heads": 4, "max_position_embeddings": 70}
model = CLIPTextModel(CLIPTextConfig(**sizes)).eval()
ids = torch.tensor([[92, 95]])
mask = torch.arange(2).repeat(1, 1)
ids2 = torch.tensor([[52, 95]])
with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=mask).pooler_output[0]
    actual = model(input_ids=ids2, attention_mask=mask).pooler_output[0]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
