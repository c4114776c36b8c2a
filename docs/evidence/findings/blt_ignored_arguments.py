"""BLT ignores its top-level `rope_parameters`: only those of its four sub-configurations have an effect."""

import torch
from transformers import BltConfig, BltModel

sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
parts = {f"{name}_config": {**sizes, "hidden_size_global": 64} for name in ("encoder", "decoder")}
parts |= {f"{name}_config": sizes for name in ("global", "patcher")}
ids, outputs = torch.tensor([[11, 12, 13, 14, 15, 16]]), []
for base in (10.0, 1e6):
    torch.manual_seed(0)
    rope = {"rope_type": "default", "rope_theta": base}
    model = BltModel(BltConfig(**parts, encoder_hash_byte_group_vocab=99, rope_parameters=rope)).eval()
    with torch.no_grad():
        outputs.append(model(ids, use_cache=False).last_hidden_state)
print("with another rope_theta the output changes by", float((outputs[0] - outputs[1]).abs().max()))
