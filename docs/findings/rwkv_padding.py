"""RWKV accepts an attention mask and ignores it, so left padding enters the state."""

import torch
from transformers import RwkvConfig, RwkvModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "attention_hidden_size": 64, "intermediate_size": 128}
model = RwkvModel(RwkvConfig(**sizes, vocab_size=99)).eval()
ids, mask = torch.tensor([[1, 1, 11, 12, 13, 14]]), torch.tensor([[0, 0, 1, 1, 1, 1]])
with torch.no_grad():
    padded = model(ids, attention_mask=mask).last_hidden_state[mask == 1]
    other = model(ids.where(mask == 1, 7), attention_mask=mask).last_hidden_state[mask == 1]
change = (padded - other).abs().amax(-1) / padded.abs().max()
print("relative change of each real token when the pads change:", [round(x, 6) for x in change.tolist()])
