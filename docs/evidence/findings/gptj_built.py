"""GPT-J and CodeGen: the position table of a model built in bfloat16 is rounded, that of a loaded one is not."""

from tempfile import TemporaryDirectory

import torch
from transformers import AutoModel, CodeGenConfig, GPTJConfig

sizes = {"vocab_size": 50, "n_embd": 64, "n_head": 4, "n_layer": 2, "rotary_dim": 8, "n_positions": 256}
for config in (GPTJConfig, CodeGenConfig):
    model = AutoModel.from_config(config(**sizes, bos_token_id=0, eos_token_id=0), dtype=torch.bfloat16).eval()
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = AutoModel.from_pretrained(folder, dtype=torch.bfloat16).eval()
    rates = 1 / 10000 ** (torch.arange(0, 8, 2).double() / 8)
    angles = torch.arange(256).double()[:, None] * rates
    exact = torch.cat([angles.sin(), angles.cos()], 1)
    for name, made in {"built": model, "loaded": loaded}.items():
        table = dict(made.named_buffers())["h.0.attn.embed_positions"]
        print(f"{config.__name__} {name}: off by {float((table - exact).abs().max()):.2g}")
