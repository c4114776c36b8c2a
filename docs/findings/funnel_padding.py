"""Funnel Transformer: pooling averages the last real token with the adjacent padding, despite the attention mask."""

import torch
from transformers import FunnelConfig, FunnelModel

torch.manual_seed(0)
sizes = {"d_model": 64, "n_head": 4, "d_head": 16, "d_inner": 128, "num_decoder_layers": 1}
model = FunnelModel(FunnelConfig(**sizes, block_sizes=[1, 1], initializer_std=0.5, vocab_size=99)).eval()
ids, mask = torch.tensor([[11, 12, 13, 14, 0, 0, 0, 0]]), torch.tensor([[1, 1, 1, 1, 0, 0, 0, 0]])
with torch.no_grad():
    padded = model(ids, attention_mask=mask).last_hidden_state[0, :4]
    other = model(ids.where(mask == 1, 7), attention_mask=mask).last_hidden_state[0, :4]
change = (padded - other).abs().amax(-1) / padded.abs().max()
print("relative change of each real token when the pads change:", [round(x, 6) for x in change.tolist()])
