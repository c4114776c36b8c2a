"""arch:tapas: context_length (OP304), 140 tokens, with 70 and 71 exchanged."""

import torch
from transformers import TapasConfig, TapasModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
sizes |= {"intermediate_size": 128, "max_position_embeddings": 70}
model = TapasModel(TapasConfig(**sizes)).eval()
for parameter in model.parameters():
    parameter.data += 0.1 * torch.randn_like(parameter)
ids = torch.randint(8, 99, (1, 140), generator=torch.Generator().manual_seed(0))
ids2 = ids.clone()
ids2[[0, 0], [70, 71]] = torch.tensor([83, 29])
with torch.no_grad():
    expected = model(input_ids=ids).last_hidden_state[0, 47]
    actual = model(input_ids=ids2).last_hidden_state[0, 47]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference <= 0.0001)
