"""arch:fsmt: padding (OP202), replace the pad tokens."""

import torch
from transformers import FSMTConfig, FSMTModel

torch.manual_seed(0)
sizes = {"tgt_vocab_size": 99, "d_model": 64, "max_position_embeddings": 128, "encoder_ffn_dim": 128}
sizes |= {"encoder_layers": 2, "encoder_attention_heads": 4, "decoder_ffn_dim": 128, "decoder_layers": 2}
sizes |= {"decoder_attention_heads": 4, "pad_token_id": 0}
model = FSMTModel(FSMTConfig(**sizes)).eval()
encoder = model.get_encoder()
ids = torch.tensor([[92, 95]])
mask = torch.arange(2).repeat(1, 1)
ids2 = torch.tensor([[0, 95]])
with torch.no_grad():
    expected = encoder(input_ids=ids, attention_mask=mask).last_hidden_state[0, 1]
    actual = encoder(input_ids=ids2, attention_mask=mask).last_hidden_state[0, 1]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
