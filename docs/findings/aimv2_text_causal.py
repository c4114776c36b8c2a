"""AIMv2: the text model is causal with eager attention, but not with SDPA when the batch has no padding."""

import torch
from transformers import Aimv2TextConfig, Aimv2TextModel

sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
config = Aimv2TextConfig(**sizes, vocab_size=99, eos_token_id=98)
ids, other = torch.tensor([[11, 12, 13, 14, 98]]), torch.tensor([[11, 12, 13, 20, 98]])
for attention in ("eager", "sdpa"):
    torch.manual_seed(0)
    model = Aimv2TextModel._from_config(config, attn_implementation=attention).eval()
    with torch.no_grad():
        first, second = (model(x, attention_mask=torch.ones_like(x)).last_hidden_state[0, :3] for x in (ids, other))
    print(f"{attention}: a later token changes the first three by", round(float((first - second).abs().max()), 6))
