"""arch:doge: attention_backend (OP501), flex_attention."""

import copy

import torch
from transformers import DogeConfig, DogeModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
sizes |= {"max_position_embeddings": 128, "num_attention_heads": 4, "num_key_value_heads": 2, "keep_window_size": 4}
sizes |= {"num_experts": 4, "num_experts_per_tok": 2}
model = DogeModel(DogeConfig(**sizes)).eval()
flex_attention = copy.deepcopy(model)
flex_attention.set_attn_implementation("flex_attention")
ids = torch.tensor([[89, 88, 22, 24, 72, 38, 63]])
with torch.no_grad(), torch.compiler.set_stance("force_eager"):
    expected = model(input_ids=ids, use_cache=False).last_hidden_state[0, 1]
    actual = flex_attention(input_ids=ids, use_cache=False).last_hidden_state[0, 1]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
