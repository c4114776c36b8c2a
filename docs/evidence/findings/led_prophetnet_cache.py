"""LED and ProphetNet: with a cache, the decoders ignore the padding mask for a single token."""

import torch
from transformers import AutoModel, LEDConfig, ProphetNetConfig

sizes = {"num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4, "num_encoder_layers": 2}
prophetnet = ProphetNetConfig(**sizes, num_decoder_layers=2, hidden_size=64, vocab_size=99)
sizes = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_layers": 2, "decoder_layers": 2}
led = LEDConfig(**sizes, d_model=64, vocab_size=99, attention_window=4, max_encoder_position_embeddings=64)
mask = torch.tensor([[0, 0, 1, 1, 1, 1]])
for config in (led, prophetnet):
    torch.manual_seed(0)
    model = AutoModel.from_config(config).eval()
    source, target = torch.randint(3, 99, (2, 1, 6))
    with torch.no_grad():
        whole = model(source, decoder_input_ids=target, decoder_attention_mask=mask, use_cache=False)[0][0, -1]
        past = model(source, decoder_input_ids=target[:, :5], decoder_attention_mask=mask[:, :5]).past_key_values
        last = model(source, decoder_input_ids=target[:, 5:], decoder_attention_mask=mask, past_key_values=past)[0]
    change = round(float((whole - last[0, -1]).abs().max() / whole.abs().max()), 6)
    print(f"{config.model_type}: relative difference between one forward pass and its cache: [{change}]")
