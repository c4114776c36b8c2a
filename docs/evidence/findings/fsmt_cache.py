"""arch:fsmt: use_cache (OP404), use_cache on."""

import torch
import transformers
from transformers import FSMTConfig, FSMTModel

torch.manual_seed(0)
sizes = {"tgt_vocab_size": 99, "d_model": 64, "max_position_embeddings": 128, "encoder_ffn_dim": 128}
sizes |= {"encoder_layers": 2, "encoder_attention_heads": 4, "decoder_ffn_dim": 128, "decoder_layers": 2}
sizes |= {"decoder_attention_heads": 4, "pad_token_id": 0}
model = FSMTModel(FSMTConfig(**sizes)).eval()
ids = torch.tensor([[46, 12, 90, 59, 71, 37, 55]])
states = torch.randn((1, 5, 64), generator=torch.Generator().manual_seed(1))
encoder = transformers.modeling_outputs.BaseModelOutput(states)
with torch.no_grad():
    expected = model(encoder_outputs=encoder, decoder_input_ids=ids, use_cache=False, input_ids=ids).last_hidden_state[
        0, 0
    ]
    actual = model(encoder_outputs=encoder, decoder_input_ids=ids, use_cache=True, input_ids=ids).last_hidden_state[
        0, 0
    ]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
