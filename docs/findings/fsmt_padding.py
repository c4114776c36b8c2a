"""FSMT: the encoder counts positions from the token ids instead of the attention mask."""

import torch
from transformers import FSMTConfig, FSMTModel

torch.manual_seed(0)
sizes = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 64, "encoder_attention_heads": 4, "encoder_ffn_dim": 128}
config = FSMTConfig(**sizes, decoder_attention_heads=4, src_vocab_size=99, tgt_vocab_size=99, langs=["en", "de"])
model = FSMTModel(config).eval()
ids, mask = torch.tensor([[1, 1, 11, 12, 13, 14]]), torch.tensor([[0, 0, 1, 1, 1, 1]])
with torch.no_grad():
    padded = model.get_encoder()(ids, attention_mask=mask).last_hidden_state[mask == 1]
    other = model.get_encoder()(ids.where(mask == 1, 7), attention_mask=mask).last_hidden_state[mask == 1]
change = (padded - other).abs().amax(-1) / padded.abs().max()
print("relative change of each real token when the pads change:", [round(x, 6) for x in change.tolist()])
