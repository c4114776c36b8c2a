"""DeepSeek-V4: padding tokens are compressed into entries that later tokens attend to."""

import torch
from transformers import DeepseekV4Config, DeepseekV4Model

torch.manual_seed(0)
sizes = {"num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4}
sizes |= {"vocab_size": 99, "moe_intermediate_size": 64, "q_lora_rank": 32, "o_lora_rank": 32}
sizes |= {"n_routed_experts": 4, "num_experts_per_tok": 2, "mlp_layer_types": ["moe"]}
sizes |= {"layer_types": ["compressed_sparse_attention"]}
model = DeepseekV4Model(DeepseekV4Config(**sizes)).eval()
for parameter in model.parameters():
    torch.nn.init.normal_(parameter, std=0.1)
ids, mask = torch.tensor([[0, 0, 11, 12, 13, 14, 15, 16]]), torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1]])
with torch.no_grad():
    padded = model(ids, attention_mask=mask).last_hidden_state[0, 2:]
    other = model(ids.where(mask == 1, 7), attention_mask=mask).last_hidden_state[0, 2:]
change = (padded - other).abs().amax(-1) / padded.abs().max()
print("relative change of each real token when the pads change:", [round(x, 6) for x in change.tolist()])
