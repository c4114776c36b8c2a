"""Llama: `.to(bfloat16)` rounds the rotary frequencies; `from_pretrained(dtype=bfloat16)` does not."""

from tempfile import TemporaryDirectory

import torch
from transformers import LlamaConfig, LlamaModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
model = LlamaModel(LlamaConfig(**sizes, vocab_size=99, initializer_range=0.2)).eval()
with TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    loaded = LlamaModel.from_pretrained(folder, dtype=torch.bfloat16).eval()
inputs = {"input_ids": torch.randint(99, (1, 6)), "position_ids": torch.arange(0, 2040, 389)[None]}
inputs["attention_mask"] = torch.ones(1, 6, dtype=torch.long)
with torch.no_grad():
    exact = model(**inputs)[0]
    for name, candidate in (("loaded", loaded), ("cast", model.to(torch.bfloat16))):
        print(f"{name}: off by", round(float((candidate(**inputs)[0] - exact).abs().max() / exact.abs().max()), 6))
