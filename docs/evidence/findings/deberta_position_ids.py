"""DeBERTa-v2 ignores position ids, without a warning, with the setting that its released checkpoints have."""

import torch
from transformers import DebertaV2Config, DebertaV2Model

torch.manual_seed(0)
sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
attention = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
ids = torch.randint(1, 99, (1, 8))
other = torch.arange(8).flip(0).unsqueeze(0)
for biased in (True, False):
    config = DebertaV2Config(**sizes, **attention, vocab_size=99, initializer_range=0.2, position_biased_input=biased)
    model = DebertaV2Model(config).eval()
    with torch.no_grad():
        change = model(ids).last_hidden_state - model(ids, position_ids=other).last_hidden_state
    print(f"position_biased_input={biased}: other position ids change the output by", float(change.abs().max()))
