"""arch:xlstm: use_cache (OP404), use_cache on."""

import torch
from transformers import xLSTMConfig, xLSTMModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 128, "num_hidden_layers": 2, "chunk_size": 4, "max_inference_chunksize": 4}
model = xLSTMModel(xLSTMConfig(**sizes)).eval()
ids = torch.tensor([[46, 12, 90, 59, 71, 37, 55]])
with torch.no_grad():
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 5]
    actual = model(input_ids=ids, use_cache=True).last_hidden_state[0, 5]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
