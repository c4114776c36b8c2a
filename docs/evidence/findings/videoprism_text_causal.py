"""arch:videoprism_text_model: causal (OP201), replace the tokens from 1 on."""

import torch
from transformers import VideoPrismTextConfig, VideoPrismTextModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"num_attention_heads": 4}
model = VideoPrismTextModel(VideoPrismTextConfig(**sizes)).eval()
ids = torch.tensor([[89, 74]])
ids2 = torch.tensor([[89, 66]])
with torch.no_grad():
    expected = model(input_ids=ids).last_hidden_state[0, 1]
    actual = model(input_ids=ids2).last_hidden_state[0, 1]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
