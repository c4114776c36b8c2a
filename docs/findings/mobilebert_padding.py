"""MobileBERT: each token reads its two neighbors, including padding, despite the attention mask."""

import torch
from transformers import MobileBertConfig, MobileBertModel

torch.manual_seed(0)
model = MobileBertModel(MobileBertConfig(num_hidden_layers=2, vocab_size=99)).eval()
ids, mask = torch.tensor([[11, 12, 13, 0, 0]]), torch.tensor([[1, 1, 1, 0, 0]])
with torch.no_grad():
    padded = model(ids, attention_mask=mask).last_hidden_state[0, :3]
    other = model(ids.where(mask == 1, 7), attention_mask=mask).last_hidden_state[0, :3]
change = (padded - other).abs().amax(-1) / padded.abs().max()
print("relative change of each real token when the pads change:", [round(x, 6) for x in change.tolist()])
