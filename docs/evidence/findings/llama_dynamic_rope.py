"""arch:llama?rope_parameters={"rope_theta":10000.0,"rope_type":"dynamic","factor":4.0}: stateless (OP406), after...."""

import torch
from transformers import LlamaConfig, LlamaModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128}
sizes |= {"rope_parameters": {"rope_theta": 10000.0, "rope_type": "dynamic", "factor": 4.0}}
model = LlamaModel(LlamaConfig(**sizes)).eval()
ids = torch.randint(8, 99, (2, 257), generator=torch.Generator().manual_seed(2))
ids2 = torch.randint(8, 99, (2, 128), generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    expected = model(input_ids=ids2, use_cache=False).last_hidden_state[0, 107]
    model(input_ids=ids, use_cache=False)
    actual = model(input_ids=ids2, use_cache=False).last_hidden_state[0, 107]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 1e-06)
