"""BLT: left padding is hashed and patched together with the following bytes, despite the attention mask."""

import torch
from transformers import BltConfig, BltModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
parts = {f"{name}_config": {**sizes, "hidden_size_global": 64} for name in ("encoder", "decoder")}
parts |= {f"{name}_config": sizes for name in ("global", "patcher")}
model = BltModel(BltConfig(**parts, encoder_hash_byte_group_vocab=99)).eval()
ids, mask = torch.tensor([[0, 0, 11, 12, 13, 14]]), torch.tensor([[0, 0, 1, 1, 1, 1]])
with torch.no_grad():
    padded = model(ids, attention_mask=mask, use_cache=False).last_hidden_state[mask == 1]
    other = model(ids.where(mask == 1, 7), attention_mask=mask, use_cache=False).last_hidden_state[mask == 1]
change = (padded - other).abs().amax(-1) / padded.abs().max()
print("relative change of each real token when the pads change:", [round(x, 6) for x in change.tolist()])
