"""arch:vilt: padding (OP202), replace the pad tokens."""

import torch
from transformers import ViltConfig, ViltModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
sizes |= {"intermediate_size": 128, "image_size": 12, "patch_size": 4}
model = ViltModel(ViltConfig(**sizes)).eval()
pixel_values = torch.randn((1, 3, 12, 12), generator=torch.Generator().manual_seed(1))
ids = torch.tensor([[92, 95]])
mask = torch.arange(2).repeat(1, 1)
ids2 = torch.tensor([[52, 95]])
with torch.no_grad():
    expected = model(input_ids=ids, pixel_values=pixel_values, attention_mask=mask).pooler_output[0]
    actual = model(input_ids=ids2, pixel_values=pixel_values, attention_mask=mask).pooler_output[0]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
