"""arch:recurrent_gemma: padding (OP202), replace the pad tokens."""

import torch
from transformers import RecurrentGemmaConfig, RecurrentGemmaModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "vocab_size": 99, "hidden_size": 80, "intermediate_size": 240}
sizes |= {"attention_window_size": 4, "block_types": ["recurrent", "attention"]}
model = RecurrentGemmaModel(RecurrentGemmaConfig(**sizes)).eval()
ids = torch.tensor([[92, 95]])
mask = torch.arange(2).repeat(1, 1)
ids2 = torch.tensor([[52, 95]])
with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[0, 1]
    actual = model(input_ids=ids2, attention_mask=mask, use_cache=False).last_hidden_state[0, 1]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
