"""Reformer: the amount of padding changes which tokens a text attends to, despite the attention mask."""

import torch
from transformers import ReformerConfig, ReformerModel

sizes = {"hidden_size": 64, "num_attention_heads": 4, "attention_head_size": 16, "feed_forward_size": 128}
extra = {"axial_pos_embds": False, "max_position_embeddings": 64, "vocab_size": 99, "local_attn_chunk_length": 4}
for kind in ("local", "lsh"):
    torch.manual_seed(0)
    config = ReformerConfig(**sizes, **extra, attn_layers=[kind], hash_seed=0, num_buckets=4, lsh_attn_chunk_length=4)
    model = ReformerModel(config).eval()
    text, mask = torch.arange(11, 27).unsqueeze(0), torch.ones(1, 16, dtype=torch.long)
    pads = torch.zeros(1, 48, dtype=torch.long)
    with torch.no_grad():
        alone = model(text, attention_mask=mask).last_hidden_state
        padded = model(torch.cat([text, pads], 1), attention_mask=torch.cat([mask, pads], 1)).last_hidden_state
    change = (alone - padded[:, :16]).abs().max() / alone.abs().max()
    print(f"{kind}: relative change when the row is padded: {change:.1e}")
