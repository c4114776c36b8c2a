"""Reformer: the length of the first call sets the number of hash buckets of all later ones."""

import torch
from transformers import ReformerConfig, ReformerModel

sizes = {"hidden_size": 64, "num_attention_heads": 2, "attention_head_size": 32, "axial_pos_embds": False}
config = {**sizes, "attn_layers": ["lsh"], "lsh_attn_chunk_length": 4, "hash_seed": 0, "max_position_embeddings": 64}
short, text = torch.randint(320, (1, 8)), torch.randint(320, (1, 32))
with torch.no_grad():
    outputs = {}
    for name, before in (("first", ()), ("second", (short,))):
        torch.manual_seed(0)
        model = ReformerModel(ReformerConfig(**config, is_decoder=False)).eval()
        for tokens in (*before, text):
            outputs[name] = model(tokens)[0]
        print(name, "call: num_buckets", model.config.num_buckets)
print("off by", float((outputs["first"] - outputs["second"]).abs().max()))
