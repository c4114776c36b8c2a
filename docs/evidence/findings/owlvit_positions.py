"""arch:owlvit_text_model: batch_composition (OP407), padded on the left in a batch with a longer row."""

import torch
from transformers import OwlViTTextConfig, OwlViTTextModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"num_attention_heads": 4}
model = OwlViTTextModel(OwlViTTextConfig(**sizes)).eval()
ids = torch.tensor([[0, 0, 0, 89, 88, 22, 24, 72, 38, 63]])
mask = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1, 1, 1]])
with torch.no_grad():
    expected = model(input_ids=ids[:, 3:]).last_hidden_state[0, 0]
    actual = model(input_ids=ids, attention_mask=mask).last_hidden_state[0, 3]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
