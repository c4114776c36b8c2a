"""VideoPrism: the text model is causal with an attention mask of ones, but not without an attention mask."""

import torch
from transformers import VideoPrismTextConfig, VideoPrismTextModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
model = VideoPrismTextModel(VideoPrismTextConfig(**sizes, vocab_size=99)).eval()
ids, other = torch.tensor([[11, 12, 13, 14, 15]]), torch.tensor([[11, 12, 13, 14, 7]])
for name, mask in (("mask of ones", torch.ones_like(ids)), ("no mask", None)):
    with torch.no_grad():
        first, second = (model(x, attention_mask=mask).last_hidden_state[0, 0] for x in (ids, other))
    print(f"{name}: the last token changes the first by", round(float((first - second).abs().max()), 6))
