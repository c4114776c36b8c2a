"""Nystromformer: the convolution over the values reads padding tokens, despite the attention mask."""

import torch
from transformers import NystromformerConfig, NystromformerModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
model = NystromformerModel(NystromformerConfig(**sizes, num_landmarks=5, segment_means_seq_len=5, vocab_size=99)).eval()
ids, mask = torch.tensor([[11, 12, 13, 1, 1]]), torch.tensor([[1, 1, 1, 0, 0]])
with torch.no_grad():
    padded = model(ids, attention_mask=mask).last_hidden_state[0, :3]
    other = model(ids.where(mask == 1, 7), attention_mask=mask).last_hidden_state[0, :3]
change = (padded - other).abs().amax(-1) / padded.abs().max()
print("relative change of each real token when the pads change:", [round(x, 6) for x in change.tolist()])
