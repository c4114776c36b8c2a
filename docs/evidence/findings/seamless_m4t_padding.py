"""arch:seamless_m4t: padding (OP202), replace the pad tokens."""

import torch
from transformers import SeamlessM4TConfig, SeamlessM4TModel

torch.manual_seed(0)
sizes = {"vocab_size": 99, "t2u_vocab_size": 99, "hidden_size": 64, "max_position_embeddings": 128, "encoder_layers": 2}
sizes |= {"encoder_ffn_dim": 512, "decoder_layers": 2, "decoder_ffn_dim": 512, "speech_encoder_layers": 2}
sizes |= {"speech_encoder_intermediate_size": 256, "feature_projection_input_dim": 10, "rotary_embedding_base": 625}
sizes |= {"max_source_positions": 128, "t2u_encoder_layers": 2, "t2u_encoder_ffn_dim": 512, "t2u_decoder_layers": 2}
sizes |= {"t2u_decoder_ffn_dim": 512, "unit_hifi_gan_vocab_size": 99, "unit_embed_dim": 80, "lang_embed_dim": 16}
sizes |= {"spkr_embed_dim": 16}
model = SeamlessM4TModel(SeamlessM4TConfig(**sizes)).eval()
encoder = model.get_encoder()
ids = torch.tensor([[92, 95]])
mask = torch.arange(2).repeat(1, 1)
ids2 = torch.tensor([[0, 95]])
with torch.no_grad():
    expected = encoder(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[0, 1]
    actual = encoder(input_ids=ids2, attention_mask=mask, use_cache=False).last_hidden_state[0, 1]
difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())
print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)
raise SystemExit(difference > 0.0001)
