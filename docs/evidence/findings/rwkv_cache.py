"""RWKV: in cached decoding of a batch, the state of one row is mixed into the others."""

import torch
from transformers import RwkvConfig, RwkvForCausalLM

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "attention_hidden_size": 64, "intermediate_size": 128}
model = RwkvForCausalLM(RwkvConfig(**sizes, vocab_size=99, eos_token_id=0)).eval()
ids = torch.randint(1, 99, (2, 6))
with torch.no_grad():
    first = model(ids[:, :5], use_cache=True)
    alone = [model(row[:, :5], use_cache=True) for row in ids.split(1)]
    batched = model(ids[:, 5:], state=first.state).logits
    each = [model(row[:, 5:], state=one.state).logits for row, one in zip(ids.split(1), alone, strict=True)]
print("shape of the logits of one more token for a batch of two:", list(batched.shape))
change = (batched[:, -1] - torch.cat(each)[:, -1]).abs().amax(-1) / torch.cat(each).abs().max()
print("relative difference between rows alone and a batch and its cache:", [round(x, 6) for x in change.tolist()])
