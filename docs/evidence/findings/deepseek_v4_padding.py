"""arch:deepseek_v4: padding (OP202), replace the pad tokens."""

import torch
from transformers import DeepseekV4Config, DeepseekV4Model

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "moe_intermediate_size": 64, "num_hidden_layers": 2}
sizes |= {"num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 32, "num_experts_per_tok": 2}
sizes |= {"n_routed_experts": 4, "max_position_embeddings": 128}
sizes |= {"layer_types": ["heavily_compressed_attention", "compressed_sparse_attention"], "sliding_window": 4}
sizes |= {"index_topk": 4, "qk_rope_head_dim": 8}
model = DeepseekV4Model(DeepseekV4Config(**sizes)).eval()
ids = torch.tensor([[92, 95, 89, 74, 53, 35, 15]])
mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1]])
ids2 = torch.tensor([[52, 95, 89, 74, 53, 35, 15]])
with torch.no_grad():
    expected = model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[0, 4]
    actual = model(input_ids=ids2, attention_mask=mask, use_cache=False).last_hidden_state[0, 4]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
