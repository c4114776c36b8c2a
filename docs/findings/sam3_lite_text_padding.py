"""SAM3-LiteText: the convolutions of the text encoder read padding tokens, despite the attention mask."""

import torch
from transformers import Sam3LiteTextTextConfig, Sam3LiteTextTextModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
model = Sam3LiteTextTextModel(Sam3LiteTextTextConfig(**sizes, vocab_size=99, layer_scale_init_value=1.0)).eval()
ids, mask = torch.tensor([[11, 12, 13, 0, 0]]), torch.tensor([[1, 1, 1, 0, 0]])
with torch.no_grad():
    padded = model(ids, attention_mask=mask).last_hidden_state[0, :3]
    other = model(ids.where(mask == 1, 7), attention_mask=mask).last_hidden_state[0, :3]
change = (padded - other).abs().amax(-1) / padded.abs().max()
print("relative change of each real token when the pads change:", [round(x, 6) for x in change.tolist()])
