"""CANINE: a text gives different outputs alone and with padding, although the attention mask hides the padding."""

import torch
from transformers import CanineConfig, CanineModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
model = CanineModel(CanineConfig(**sizes, num_hash_buckets=99, max_position_embeddings=64)).eval()
text = torch.arange(97, 113).unsqueeze(0)  # four complete molecules of four characters
padded = torch.cat([text, torch.zeros(1, 16, dtype=torch.long)], dim=1)
with torch.no_grad():
    alone = model(text, attention_mask=torch.ones_like(text)).last_hidden_state
    with_padding = model(padded, attention_mask=(padded != 0).long()).last_hidden_state[:, :16]
change = (alone - with_padding).abs().amax(-1)[0] / alone.abs().max()
print("relative change of each character:", [round(x, 3) for x in change.tolist()])
