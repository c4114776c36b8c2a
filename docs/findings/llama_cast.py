"""Llama cast with `.to(bfloat16)` has rounded frequencies; loaded in bfloat16 from a folder it has not."""

from tempfile import TemporaryDirectory

import torch
from transformers import LlamaConfig, LlamaModel

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
model = LlamaModel(LlamaConfig(**sizes, vocab_size=99, initializer_range=0.2)).eval()
with TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    loaded = LlamaModel.from_pretrained(folder, dtype=torch.bfloat16).eval()
given = {"input_ids": torch.randint(99, (1, 6)), "position_ids": torch.arange(0, 2040, 389)[None]}
given["attention_mask"] = torch.ones(1, 6, dtype=torch.long)
with torch.no_grad():
    exact = model(**given)[0]
    for name, made in (("loaded", loaded), ("cast", model.to(torch.bfloat16))):
        print(f"{name}: off by", round(float((made(**given)[0] - exact).abs().max() / exact.abs().max()), 6))
