"""arch:reformer: batch_composition (OP407), padded on the right in a batch with a longer row."""

import torch
from transformers import ReformerConfig, ReformerModel

torch.manual_seed(0)
sizes = {"attention_head_size": 16, "axial_pos_embds_dim": [16, 48], "feed_forward_size": 128, "hidden_size": 64}
sizes |= {"local_attn_chunk_length": 4, "lsh_attn_chunk_length": 4, "max_position_embeddings": 128}
sizes |= {"num_attention_heads": 8, "vocab_size": 99}
model = ReformerModel(ReformerConfig(**sizes)).eval()
ids = torch.tensor([[89, 88, 22, 24, 72, 38, 63, 0, 0, 0]])
mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1, 0, 0, 0]])
with torch.no_grad():
    expected = model(input_ids=ids[:, :7], use_cache=False).last_hidden_state[0, 2]
    actual = model(input_ids=ids, use_cache=False, attention_mask=mask).last_hidden_state[0, 2]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
